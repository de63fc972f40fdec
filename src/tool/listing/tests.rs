use super::items::{DESCRIPTION_BYTES_MAX, SCHEMA_BYTES_MAX};
use super::*;
use crate::task::server::{PromptArgument, ServerPrompt, ServerResource, ServerTool};
use serde_json::json;

fn listed(pages: &[Value]) -> (Vec<String>, Vec<String>, Next) {
    let mut listing = Listing::<ServerTool>::default();
    let mut next = Next::End;
    for page in pages {
        next = listing.add(page.clone()).expect("a page");
    }
    let (tools, warnings) = listing.finish();
    (tools.iter().map(|tool| tool.name.clone()).collect(), warnings, next)
}

fn schema(tool: Value) -> Result<Value, String> {
    ServerTool::read(tool).map(|(tool, _)| Value::Object((*tool.input_schema).clone()))
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
fn a_tool_that_can_only_be_called_as_a_task_is_left_out() {
    let tool =
        |name: &str, support: &str| json!({"name": name, "execution": {"taskSupport": support}});
    let tools = [tool("a", "forbidden"), tool("b", "optional"), tool("c", "required")];
    let (names, warnings, _) = listed(&[json!({ "tools": tools })]);
    assert_eq!(names, ["a", "b"]);
    let why = "its tool `c` can't be used: it can only be called as a task, which is not supported";
    assert_eq!(warnings, [why]);
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
    let many: Vec<_> = (0..=ITEMS_MAX).map(|at| json!({"name": at.to_string()})).collect();
    let (names, warnings, _) = listed(&[json!({"tools": many})]);
    assert_eq!((names.len(), warnings.len()), (ITEMS_MAX, 1));
}

#[test]
fn large_lists_are_cut_with_few_words() {
    let odd: Vec<_> = (0..10_000).map(Value::from).collect();
    let (names, warnings, _) = listed(&[json!({"tools": odd})]);
    assert_eq!((names.len(), warnings.len()), (0, WARNINGS_MAX + 1));
    let last = format!("and {} more such warnings", 10_000 - WARNINGS_MAX);
    assert_eq!(warnings.last(), Some(&last));
    let schema = json!({"x": "x".repeat(SCHEMA_BYTES_MAX - 100)});
    let fitting = LIST_BYTES_MAX / (SCHEMA_BYTES_MAX - 100);
    let large: Vec<_> =
        (0..fitting + 2).map(|at| json!({"name": at.to_string(), "inputSchema": schema})).collect();
    let (names, warnings, _) = listed(&[json!({"tools": large})]);
    assert!(names.len() + warnings.len() == fitting + 2 && names.len() + 2 >= fitting);
    assert!(warnings[0].contains("left out"), "{warnings:?}");
}

#[test]
fn what_is_no_page_is_an_error() {
    for result in [json!({}), json!(null), json!({"tools": {}}), json!([])] {
        assert!(Listing::<ServerTool>::default().add(result.clone()).is_err(), "{result}");
    }
}

#[test]
fn a_description_may_be_missing_or_long() {
    let description = |tool: Value| ServerTool::read(tool).expect("a tool").0.description;
    assert_eq!(description(json!({"name": "a"})), "");
    assert_eq!(description(json!({"name": "a", "description": 7})), "");
    assert_eq!(description(json!({"name": "a", "title": "A", "description": ""})), "A");
    let long = "é".repeat(DESCRIPTION_BYTES_MAX);
    assert_eq!(description(json!({"name": "a", "description": long})).len(), DESCRIPTION_BYTES_MAX);
}

/// The items of one page, and the warnings.
fn page<T: Listed + Clone>(items: Value) -> (Vec<T>, Vec<String>) {
    let mut listing = Listing::<T>::default();
    let added = listing.add(json!({ T::ITEMS: items }));
    assert_eq!(added, Ok(Next::End));
    let (items, warnings) = listing.finish();
    (items.to_vec(), warnings)
}

#[test]
fn a_resource_needs_an_address_and_nothing_else() {
    let (resources, warnings) = page::<ServerResource>(json!([
        {"uri": "note://1", "name": "one", "title": "One", "description": "A note.",
            "mimeType": "text/plain"},
        {"uri": "note://2", "name": "two", "mimeType": 7},
        {"uri": "note://1"}, {"name": "none"}, {"uri": "x".repeat(URI_BYTES_MAX + 1)}, 7,
    ]));
    let resource = |uri: &str, name: &str, description: &str, media_type: &str| ServerResource {
        uri: uri.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        media_type: media_type.to_owned(),
    };
    let one = resource("note://1", "One", "A note.", "text/plain");
    assert_eq!(resources, [one, resource("note://2", "two", "", "")]);
    assert_eq!(warnings[0], "its resource `note://1` is listed twice");
    assert_eq!(warnings[1..], ["one of its resources has no usable uri"; 3]);
}

#[test]
fn a_prompt_has_its_arguments_in_order() {
    let (prompts, warnings) = page::<ServerPrompt>(json!([
        {"name": "plain"},
        {"name": "both", "title": "Both", "arguments": [
            {"name": "b", "required": true}, {"name": "a", "description": "An a."},
        ]},
        {"name": "odd", "arguments": [{}]}, {"title": "no name"},
    ]));
    let argument = |name: &str, description: &str, is_required| PromptArgument {
        name: name.to_owned(),
        description: description.to_owned(),
        is_required,
    };
    let arguments = vec![argument("b", "", true), argument("a", "An a.", false)];
    let prompt = |name: &str, description: &str, arguments| ServerPrompt {
        name: name.to_owned(),
        description: description.to_owned(),
        arguments,
    };
    assert_eq!(prompts, [prompt("plain", "", Vec::new()), prompt("both", "Both", arguments)]);
    let odd = "its prompt `odd` can't be used: one of its arguments has no usable name";
    assert_eq!(warnings, [odd, "one of its prompts has no usable name"]);
}
