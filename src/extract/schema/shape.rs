//! Limits the work and stack that a schema can need, before it is compiled: a few hundred bytes of
//! schema can require more than any machine has.
//!
//! An ambiguous reference counts as a reference to each possible target.

use super::SchemaError;
use super::places::{Place, places};
use super::refusal::{is_meta_schema, same_name, to_data};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Longest chain of schemas that `$ref`, `allOf` and the like apply to one value.
const CHAIN_MAX: usize = 64;

/// Most schemas that may apply to one value, counted with repetitions.
const BRANCHES_MAX: usize = 1_000;

/// Deepest nesting of schemas while a value is checked; each takes up to 1.5 KiB of stack in a
/// debug build, and a thread may have no more than 2 MiB.
const STACK_SCHEMAS_MAX: usize = 640;

/// Most places that a reference can name, other than by a JSON pointer.
const NAMES_MAX: usize = 100;

/// Most regular expressions.
const PATTERNS_MAX: usize = 100;

/// The cost of a reference to a JSON Schema meta-schema.
const META_SCHEMAS: usize = 10;

/// The cost of a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Deepest nesting of arrays and objects in a value, limited by the stack.
    pub(super) levels_max: usize,
    /// How often a part of a value may be checked; `None` if that grows with its depth.
    looks: Option<usize>,
    /// Schemas that may apply to one value, counted with repetitions.
    branches: usize,
    /// Schemas that these may apply to its parts.
    parts: usize,
}

impl Shape {
    /// How often a part of a value of this depth may be checked to describe all errors
    /// in it.
    pub(super) fn looks(&self, depth: usize) -> usize {
        let levels = u32::try_from(depth).unwrap_or(u32::MAX);
        let deep = self.parts.saturating_pow(levels).saturating_mul(self.branches);
        self.looks.map_or(deep, |looks| looks.min(deep))
    }
}

/// Computes the cost of a schema.
pub(super) fn shape(schema: &Value) -> Result<Shape, SchemaError> {
    let graph = Graph::new(schema)?;
    let Some(order) = sorted(&graph.beside) else {
        return Err(too_complex("schemas apply to the same value in a cycle"));
    };
    let mut branches = vec![1_usize; order.len()];
    let mut chain = vec![1_usize; order.len()];
    let mut parts: Vec<usize> = graph.inside.iter().map(Vec::len).collect();
    for &node in order.iter().rev() {
        for &next in &graph.beside[node] {
            branches[node] = branches[node].saturating_add(branches[next]);
            chain[node] = chain[node].max(1 + chain[next]);
            parts[node] = parts[node].saturating_add(parts[next]);
        }
    }
    let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(1);
    let (branches, parts) = (most(&branches), most(&parts));
    if branches > BRANCHES_MAX {
        return Err(too_complex("more than 1000 schemas apply to the same value"));
    }
    let chain = most(&chain) + if graph.is_foreign { META_SCHEMAS } else { 0 };
    if chain > CHAIN_MAX {
        return Err(too_complex(
            "more than 64 schemas lead from one to the next on the same value",
        ));
    }
    let levels_max = STACK_SCHEMAS_MAX / chain - 1;
    // The schemas within a meta-schema are not counted: it is assumed to be too costly to locate
    // errors.
    let (looks, branches) =
        if graph.is_foreign { (None, usize::MAX) } else { (looks(&graph), branches) };
    Ok(Shape { levels_max, looks, branches, parts: parts.max(1) })
}

fn too_complex(what: &'static str) -> SchemaError {
    SchemaError::TooComplex { what }
}

/// How often a part of a value may be checked. If schemas recurse in one way
/// only, each level of a value is checked as often as the one above; in two ways, twice as often.
fn looks(graph: &Graph<'_>) -> Option<usize> {
    let all: Vec<Vec<usize>> =
        graph.beside.iter().zip(&graph.inside).map(|(a, b)| [&**a, b].concat()).collect();
    let circles = on_circles(&all);
    let stays = |from: usize, to: usize| circles[from] && circles[to];
    let mut cut = all.clone();
    for (from, nexts) in cut.iter_mut().enumerate() {
        nexts.retain(|&to| !stays(from, to));
        if all[from].len() - nexts.len() > 1 {
            return None;
        }
    }
    let mut looks = vec![1_usize; cut.len()];
    for &node in sorted(&cut)?.iter().rev() {
        for &next in &cut[node] {
            looks[node] = looks[node].saturating_add(looks[next]);
        }
    }
    let again = looks.iter().zip(&circles).filter(|(_, is_on_circle)| **is_on_circle);
    let again = again.fold(1_usize, |sum, (looks, _)| sum.saturating_add(*looks));
    Some(looks.first().map_or(1, |root| root.saturating_mul(again)))
}

/// The nodes on a cycle, or between two.
fn on_circles(edges: &[Vec<usize>]) -> Vec<bool> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, nexts) in edges.iter().enumerate() {
        for &to in nexts {
            back[to].push(from);
        }
    }
    let mut circles = vec![true; edges.len()];
    for node in before_circles(edges).into_iter().chain(before_circles(&back)) {
        circles[node] = false;
    }
    circles
}

/// All nodes in topological order; `None` if there is a cycle.
fn sorted(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let order = before_circles(edges);
    (order.len() == edges.len()).then_some(order)
}

/// The nodes not reachable from a cycle, in topological order (Kahn's algorithm).
fn before_circles(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut leading = vec![0_usize; edges.len()];
    for &to in edges.iter().flatten() {
        leading[to] += 1;
    }
    let mut order: Vec<usize> = (0..edges.len()).filter(|&node| leading[node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &to in &edges[node] {
            leading[to] -= 1;
            if leading[to] == 0 {
                order.push(to);
            }
        }
    }
    order
}

/// The objects of a schema, the schema itself first, and the edges between them.
struct Graph<'a> {
    /// To schemas that apply to the same value.
    beside: Vec<Vec<usize>>,
    /// To schemas that apply to a part of it.
    inside: Vec<Vec<usize>>,
    /// Something refers to another document, which can only be a meta-schema.
    is_foreign: bool,
    names: Names<'a>,
}

/// Possible targets of references.
struct Names<'a> {
    /// The objects, by address.
    numbers: HashMap<*const Map<String, Value>, usize>,
    /// The schema, and the parts of it that are documents of their own, with the last segment of
    /// their URIs.
    documents: Vec<(String, &'a Value)>,
    /// Anchors of any kind.
    anchors: Vec<(&'a str, &'a Value)>,
}

impl<'a> Graph<'a> {
    fn new(schema: &'a Value) -> Result<Self, SchemaError> {
        let places = places(schema);
        let objects: Vec<_> = places.iter().filter_map(|place| place.value.as_object()).collect();
        let patterns = objects.iter().map(|object| patterns(object)).sum::<usize>();
        if patterns > PATTERNS_MAX {
            return Err(too_complex("it has more than 100 patterns"));
        }
        let nodes = vec![Vec::new(); objects.len()];
        let names = Names::new(&places, &objects)?;
        // With such a base the name of a meta-schema may be relative.
        let ids = |place: &Place<'a>| [place.text("$id"), place.text("id")];
        let is_foreign = places.iter().flat_map(ids).flatten().any(is_meta_schema);
        let mut graph = Self { beside: nodes.clone(), inside: nodes, is_foreign, names };
        for (number, object) in objects.iter().enumerate() {
            for (key, value) in *object {
                graph.add(number, key, value).map_err(|reference| to_data(schema, reference))?;
            }
        }
        Ok(graph)
    }

    /// Adds the edges of a keyword; returns a reference that leads to no schema.
    fn add(&mut self, from: usize, key: &str, value: &'a Value) -> Result<(), &'a str> {
        let number = |value: &'a Value| self.names.number(value);
        match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let reference = value.as_str().unwrap_or_default();
                let targets = self.names.targets(reference).ok_or(reference)?;
                let is_named = !reference.is_empty() && !reference.starts_with('#');
                self.is_foreign |= is_named && (is_meta_schema(reference) || targets.is_empty());
                self.beside[from].extend(targets);
            }
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => {
                self.beside[from].extend(one_or_more(value).filter_map(number));
            }
            "dependentSchemas" | "dependencies" => {
                self.beside[from].extend(members(value).filter_map(number));
            }
            "properties" | "patternProperties" => {
                self.inside[from].extend(members(value).filter_map(number));
            }
            "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains" => {
                self.inside[from].extend(one_or_more(value).filter_map(number));
            }
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Names<'a> {
    fn new(places: &[Place<'a>], objects: &[&'a Map<String, Value>]) -> Result<Self, SchemaError> {
        let numbers = objects.iter().map(|object| std::ptr::from_ref(*object)).zip(0..).collect();
        let mut names = Self { numbers, documents: Vec::new(), anchors: Vec::new() };
        let mut known = HashMap::new();
        names.documents.extend(places.first().map(|root| (String::new(), root.value)));
        for place in places {
            let value = place.value;
            if let Some(id) = place.text("$id") {
                // A full URI does not depend on its place.
                let base = if id.contains(':') { "" } else { place.base };
                let id = id.trim_end_matches('#');
                if let Some(first) = known.insert((base, id), place) {
                    return Err(same_name(places, [first, place]));
                }
            }
            for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                match value.get(key).and_then(Value::as_str) {
                    None => {}
                    Some(name) if !key.ends_with("id") => names.anchors.push((name, value)),
                    Some(name) => match name.strip_prefix('#') {
                        Some(anchor) => names.anchors.push((anchor, value)),
                        None => names.documents.push((last_segment(name), value)),
                    },
                }
            }
            if names.documents.len() + names.anchors.len() > NAMES_MAX {
                return Err(too_complex("it has more than 100 $id and $anchor"));
            }
        }
        Ok(names)
    }

    fn number(&self, value: &Value) -> Option<usize> {
        self.numbers.get(&std::ptr::from_ref(value.as_object()?)).copied()
    }

    /// All possible targets of a reference; `None` if that is an object that is not a schema.
    fn targets(&self, reference: &str) -> Option<Vec<usize>> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (last, fragment) = (last_segment(document), percent_decoded(fragment));
        // The base of a relative reference is ignored: the last segment is enough.
        let is_any = document.is_empty() || ["", ".", ".."].contains(&last.as_str());
        let documents = self
            .documents
            .iter()
            .filter(|(name, _)| is_any || *name == last)
            .map(|(_, value)| *value);
        let found: Vec<&Value> = match fragment.as_str() {
            "" => documents.collect(),
            pointer if pointer.starts_with('/') => {
                documents.filter_map(|document| document.pointer(pointer)).collect()
            }
            name => {
                let named = self.anchors.iter().filter(|(anchor, _)| *anchor == name);
                named.map(|(_, value)| *value).collect()
            }
        };
        let objects = found.into_iter().filter(|value| value.is_object());
        objects.map(|value| self.number(value)).collect()
    }
}

fn patterns(object: &Map<String, Value>) -> usize {
    let many = object.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    many + usize::from(object.get("pattern").is_some_and(Value::is_string))
}

/// A schema, or the schemas in an array.
fn one_or_more(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

fn members(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(Map::values)
}

/// The text after the last slash or colon of a URI, not counting one at its end.
pub(super) fn last_segment(uri: &str) -> String {
    let uri = uri.split(['#', '?']).next().unwrap_or_default();
    percent_decoded(uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default())
}

/// A part of a URI with its `%` escapes decoded (RFC 3986, section 2.1).
fn percent_decoded(fragment: &str) -> String {
    percent_encoding::percent_decode_str(fragment).decode_utf8_lossy().into_owned()
}
