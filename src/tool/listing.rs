//! The replies of a server to `tools/list`, page by page. A tool that can't be used costs itself, not
//! its server.

use crate::task::server::ServerTool;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most pages that are requested.
const PAGES_MAX: usize = 100;

/// Most tools of one server. Providers take fewer.
const TOOLS_MAX: usize = 1000;

/// Longest cursor, in bytes: all are held while the list is read.
const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// Longest name, in bytes; names are shortened for the model only.
const NAME_BYTES_MAX: usize = 256;

/// Longest description, in bytes; the rest is cut.
const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// Largest schema, in bytes of JSON.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Bytes of the descriptions and schemas of one server's tools.
const TOOLS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most warnings about the list of one server.
const WARNINGS_MAX: usize = 20;

/// The tools of a server, as its pages come in.
#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: Vec<ServerTool>,
    names: BTreeSet<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    /// Of descriptions and schemas.
    bytes: usize,
    /// The tools that were left out, for people.
    warnings: Vec<String>,
    /// Warnings past the limit.
    untold: usize,
}

/// The continuation after a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The page with this cursor.
    Page(String),
    /// Nothing.
    End,
}

impl Listing {
    /// Adds the page in `result`.
    ///
    /// # Errors
    /// If it is no page.
    pub(super) fn add(&mut self, mut result: Value) -> Result<Next, String> {
        let tools = result.get_mut("tools").map(Value::take);
        let Some(Value::Array(tools)) = tools else {
            return Err("its answer to tools/list has no list of tools".to_owned());
        };
        self.pages += 1;
        for tool in tools {
            if self.tools.len() == TOOLS_MAX {
                self.warn(format!("only its first {TOOLS_MAX} tools are used"));
                return Ok(Next::End);
            }
            match read(tool) {
                Ok((tool, _)) if !self.names.insert(tool.name.clone()) => {
                    self.warn(format!("its tool `{}` is listed twice", tool.name));
                }
                Ok((tool, bytes)) if self.bytes + bytes > TOOLS_BYTES_MAX => {
                    let name = &tool.name;
                    self.warn(format!(
                        "its tool `{name}` is left out: its tools have more than {TOOLS_BYTES_MAX} \
                         bytes of descriptions and schemas"
                    ));
                }
                Ok((tool, bytes)) => {
                    self.bytes += bytes;
                    self.tools.push(tool);
                }
                Err(why) => self.warn(why),
            }
        }
        Ok(self.next(result.get("nextCursor").and_then(Value::as_str)))
    }

    fn next(&mut self, cursor: Option<&str>) -> Next {
        // Some servers end their list with an empty cursor.
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Next::End };
        if cursor.len() > CURSOR_BYTES_MAX {
            self.warn(format!(
                "its list of tools was cut where it goes on at a cursor of more than \
                 {CURSOR_BYTES_MAX} bytes"
            ));
            return Next::End;
        }
        if !self.cursors.insert(cursor.to_owned()) {
            self.warn("its list of tools repeats itself and was cut there".to_owned());
            return Next::End;
        }
        if self.pages == PAGES_MAX {
            self.warn(format!("only the first {PAGES_MAX} pages of its tools are used"));
            return Next::End;
        }
        Next::Page(cursor.to_owned())
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        } else {
            self.untold += 1;
        }
    }

    /// All tools, and a warning about those that were left out.
    pub(super) fn finish(mut self) -> (Arc<[ServerTool]>, Vec<String>) {
        if self.untold > 0 {
            self.warnings.push(format!("and {} more such warnings", self.untold));
        }
        (self.tools.into(), self.warnings)
    }
}

/// A tool, and the bytes of its description and schema.
fn read(mut tool: Value) -> Result<(ServerTool, usize), String> {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("one of its tools has no usable name".to_owned());
    }
    let unusable = |why: &str| format!("its tool `{name}` can't be used: {why}");
    let input_schema = match tool.get_mut("inputSchema").map(Value::take) {
        // Written by servers whose tool takes nothing.
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(schema)) => schema,
        Some(_) => return Err(unusable("its inputSchema is not an object")),
    };
    let (input_schema, schema_bytes) = of_object(input_schema).map_err(unusable)?;
    let text = |member: &str| tool.get(member).and_then(Value::as_str).filter(|it| !it.is_empty());
    let description = text("description").or(text("title")).unwrap_or_default();
    let description = cut(description, DESCRIPTION_BYTES_MAX).to_owned();
    let bytes = schema_bytes + description.len();
    Ok((ServerTool { name, description, input_schema: Arc::new(input_schema) }, bytes))
}

/// The schema with what some providers want written out: that it describes an object, and its
/// properties. With its bytes of JSON.
fn of_object(mut schema: Map<String, Value>) -> Result<(Map<String, Value>, usize), &'static str> {
    match schema.get("type") {
        None | Some(Value::Null) => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if *kind == "object" => {}
        Some(_) => return Err("its inputSchema does not describe an object"),
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    if !schema.get("required").is_none_or(Value::is_array) {
        schema.shift_remove("required");
    }
    // Its size is that of a request to the provider, again and again.
    let bytes = serde_json::to_string(&schema).map_or(usize::MAX, |text| text.len());
    if bytes > SCHEMA_BYTES_MAX {
        return Err("its inputSchema is too large");
    }
    Ok((schema, bytes))
}

/// The beginning of `text` that has at most `bytes_max` bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(pages: &[Value]) -> (Vec<String>, Vec<String>, Next) {
        let mut listing = Listing::default();
        let mut next = Next::End;
        for page in pages {
            next = listing.add(page.clone()).expect("a page");
        }
        let (tools, warnings) = listing.finish();
        (tools.iter().map(|tool| tool.name.clone()).collect(), warnings, next)
    }

    fn schema(tool: Value) -> Result<Value, String> {
        read(tool).map(|(tool, _)| Value::Object((*tool.input_schema).clone()))
    }

    #[test]
    fn an_odd_schema_costs_one_tool_at_most() {
        let empty = json!({"type": "object", "properties": {}});
        let usable = [
            (json!({"name": "a"}), empty.clone()),
            (json!({"name": "a", "inputSchema": null}), empty.clone()),
            (json!({"name": "a", "inputSchema": {}}), empty.clone()),
            (json!({"name": "a", "inputSchema": {"type": "object", "required": null}}), empty),
            (
                json!({"name": "a", "inputSchema": {"anyOf": [true], "properties": {"x": false}}}),
                json!({"anyOf": [true], "properties": {"x": false}, "type": "object"}),
            ),
        ];
        for (tool, expected) in usable {
            assert_eq!(schema(tool), Ok(expected));
        }
        let page = json!({"tools": [
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "array", "inputSchema": []},
            {"name": "boolean", "inputSchema": true},
            {"name": "string", "inputSchema": {"type": "string"}},
            {"name": "types", "inputSchema": {"type": ["object", "null"]}},
            {"name": "large", "inputSchema": {"x": "x".repeat(SCHEMA_BYTES_MAX)}},
            {"name": ""}, {"name": 7}, {}, "text", null,
            {"name": "good"},
            {"name": "last"},
        ]});
        let (names, warnings, next) = listed(&[page]);
        assert_eq!((names, next), (vec!["good".to_owned(), "last".to_owned()], Next::End));
        assert_eq!(warnings.len(), 11, "{warnings:#?}");
        assert_eq!(warnings[0], "its tool `array` can't be used: its inputSchema is not an object");
    }

    #[test]
    fn pages_end() {
        let page = |cursor: Value| json!({"tools": [], "nextCursor": cursor});
        assert_eq!(listed(&[page(json!("2"))]).2, Next::Page("2".to_owned()));
        for last in [json!(null), json!(""), json!(3)] {
            assert_eq!(listed(&[page(last)]).2, Next::End);
        }
        let (_, warnings, next) = listed(&[page(json!("2")), page(json!("2"))]);
        assert_eq!((warnings.len(), next), (1, Next::End));
        let long = page(json!("x".repeat(CURSOR_BYTES_MAX + 1)));
        let (_, warnings, next) = listed(&[long]);
        assert_eq!((warnings.len(), next), (1, Next::End));
        let pages: Vec<_> = (0..PAGES_MAX).map(|at| page(json!(at.to_string()))).collect();
        assert_eq!(listed(&pages[..PAGES_MAX - 1]).2, Next::Page((PAGES_MAX - 2).to_string()));
        assert_eq!(listed(&pages).2, Next::End);
        let many: Vec<_> = (0..=TOOLS_MAX).map(|at| json!({"name": at.to_string()})).collect();
        let (names, warnings, _) = listed(&[json!({"tools": many})]);
        assert_eq!((names.len(), warnings.len()), (TOOLS_MAX, 1));
    }

    #[test]
    fn large_lists_are_cut_with_few_words() {
        let odd: Vec<_> = (0..10_000).map(Value::from).collect();
        let (names, warnings, _) = listed(&[json!({"tools": odd})]);
        assert_eq!((names.len(), warnings.len()), (0, WARNINGS_MAX + 1));
        let last = format!("and {} more such warnings", 10_000 - WARNINGS_MAX);
        assert_eq!(warnings.last(), Some(&last));
        let schema = json!({"x": "x".repeat(SCHEMA_BYTES_MAX - 100)});
        let fitting = TOOLS_BYTES_MAX / (SCHEMA_BYTES_MAX - 100);
        let large: Vec<_> = (0..fitting + 2)
            .map(|at| json!({"name": at.to_string(), "inputSchema": schema}))
            .collect();
        let (names, warnings, _) = listed(&[json!({"tools": large})]);
        assert!(names.len() + warnings.len() == fitting + 2 && names.len() + 2 >= fitting);
        assert!(warnings[0].contains("left out"), "{warnings:?}");
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        for result in [json!({}), json!(null), json!({"tools": {}}), json!([])] {
            assert!(Listing::default().add(result.clone()).is_err(), "{result}");
        }
    }

    #[test]
    fn a_description_may_be_missing_or_long() {
        let description = |tool: Value| read(tool).expect("a tool").0.description;
        assert_eq!(description(json!({"name": "a"})), "");
        assert_eq!(description(json!({"name": "a", "description": 7})), "");
        assert_eq!(description(json!({"name": "a", "title": "A", "description": ""})), "A");
        let long = "é".repeat(DESCRIPTION_BYTES_MAX);
        assert_eq!(
            description(json!({"name": "a", "description": long})).len(),
            DESCRIPTION_BYTES_MAX
        );
    }
}
