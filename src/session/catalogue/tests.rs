use super::*;
use crate::session::approval::ToolGlob;
use proptest::prelude::*;
use serde_json::{Map, json};

fn schema(value: Value) -> Arc<Map<String, Value>> {
    let Value::Object(map) = value else { panic!("not an object: {value}") };
    Arc::new(map)
}

fn tool(name: &str) -> ServerTool {
    let input_schema = schema(json!({"type": "object"}));
    ServerTool { name: name.to_owned(), description: String::new(), input_schema }
}

fn client(name: &str) -> ClientTool {
    let input_schema = schema(json!({"type": "object"}));
    let spec = ToolSpec { name: name.to_owned(), description: String::new(), input_schema };
    ClientTool { spec, human: false }
}

fn servers(list: &[(&str, &[&str])]) -> BTreeMap<ServerName, Vec<ServerTool>> {
    let servers = list.iter().map(|(server, tools)| {
        let server = ServerName::new(server).expect("a name");
        (server, tools.iter().map(|name| tool(name)).collect())
    });
    servers.collect()
}

/// The shown names of the tools of a client and of servers.
fn names(clients: &[&str], list: &[(&str, &[&str])]) -> Vec<String> {
    let clients: Vec<_> = clients.iter().map(|name| client(name)).collect();
    let catalogue = Catalogue::new(&clients, &servers(list));
    catalogue.entries().iter().map(|entry| entry.spec.name.clone()).collect()
}

#[test]
fn names_are_kept_where_they_can_be() {
    assert_eq!(names(&[], &[("fs", &["read", "write"])]), ["read", "write"]);
    assert_eq!(names(&["read"], &[("fs", &["read", "write"])]), ["read", "fs__read", "write"]);
    let two: &[(&str, &[&str])] = &[("a", &["search", "x"]), ("b", &["search"])];
    assert_eq!(names(&[], two), ["a__search", "x", "b__search"]);
    assert_eq!(names(&[], &[("my server", &["a.b/c"])]), ["my_server__a_b_c"]);
    assert_eq!(names(&[], &[("s", &["twice", "twice"])]), ["twice"]);
    assert_eq!(names(&["same", "same"], &[]), ["same"]);
    assert_eq!(names(&[], &[("s", &[""])]), ["s__"]);
}

/// The names of the tools that a rule allows, and whether it can be read in several ways.
fn allowed(rule: &str, list: &[(&str, &[&str])]) -> (Vec<String>, bool) {
    let rules = ApprovalRules { allow: vec![ToolGlob::new(rule)], ..Default::default() };
    let servers = servers(list);
    let names = ServerNames::new(servers.keys());
    let catalogue = Catalogue::new(&[], &servers);
    let is_allowed = |it: &&Entry| it.ruling(&rules, &names) == Ruling::Allow;
    let allowed = catalogue.entries().iter().filter(is_allowed);
    (allowed.map(|it| it.spec.name.clone()).collect(), rules.ambiguous(&names).is_some())
}

#[test]
fn a_rule_is_read_with_the_names_of_the_servers() {
    let check = |rule: &str, list: &[(&str, &[&str])], expected: &[&str], is_ambiguous: bool| {
        let (allowed, ambiguous) = allowed(rule, list);
        assert_eq!((allowed.as_slice(), ambiguous), (&*owned(expected), is_ambiguous), "{rule}");
    };
    let nested: &[(&str, &[&str])] =
        &[("my", &["server__rm", "ls"]), ("my__server", &["rm", "cat"])];
    check("my__server__rm", nested, &[], true);
    check("my__server__*", nested, &[], true);
    check("my__ls", nested, &["ls"], false);
    check("my__*", nested, &["ls", "server__rm"], false);
    check("cat", nested, &["cat"], false);
    let alone: &[(&str, &[&str])] = &[("my__server", &["rm", "cat"])];
    check("my__server__rm", alone, &["rm"], false);
    check("my__rm", alone, &[], false);
    let underscores: &[(&str, &[&str])] = &[("a", &["_b"]), ("a_", &["b"])];
    check("a___b", underscores, &[], true);
    // Patterns are read in the same way.
    check("*__server__rm", nested, &[], true);
    check("my*__server__rm", &[nested, &[("my__x__server", &["rm"])]].concat(), &[], true);
    check("m*__rm", nested, &["rm"], false);
    // A server's own name goes before one that only looks like it in names that are shown.
    let alike: &[(&str, &[&str])] = &[("my.server", &["rm"]), ("my_server", &["rm"])];
    let (own, is_ambiguous) = allowed("my_server__rm", alike);
    assert!(own.len() == 1 && own[0].starts_with("my_server__rm_") && !is_ambiguous, "{own:?}");
    let both: &[(&str, &[&str])] = &[("my.server", &["rm"]), ("my server", &["rm"])];
    check("my_server__rm", both, &[], true);
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Of the tools of a server only those that share their name with others are shown with its name.
#[test]
fn a_rule_that_denies_may_name_the_server_as_it_is_shown() {
    let check = |deny: &str, list: &[(&str, &[&str])], expected: &[&str]| {
        let deny = vec![ToolGlob::new(deny)];
        let rules = ApprovalRules { allow: vec![ToolGlob::new("*")], deny, ..Default::default() };
        let servers = servers(list);
        let names = ServerNames::new(servers.keys());
        let catalogue = Catalogue::new(&[], &servers);
        let entries = catalogue.entries().iter();
        let denied = entries.filter(|it| it.ruling(&rules, &names) != Ruling::Allow);
        let denied: Vec<_> = denied.map(|it| it.spec.name.as_str()).collect();
        assert_eq!(denied, expected, "{rules:?}");
    };
    let both: &[(&str, &[&str])] = &[("b", &["list"]), ("example.com", &["list", "rm"])];
    check("example_com__*", both, &["example_com__list", "rm"]);
    check("example.com__*", both, &["example_com__list", "rm"]);
    check("example_com__rm", both, &["rm"]);
    check("example_com__rm", &[("example.com", &["rm", "ls"])], &["rm"]);
    check("example_com__a_b", &[("example.com", &["a.b", "a"])], &["example_com__a_b"]);
    check("example_com__a.b", &[("example.com", &["a.b", "a"])], &["example_com__a_b"]);
    check("other_com__*", both, &[]);
    // A server's own name goes before one that only looks like it.
    let alike: &[(&str, &[&str])] = &[("a_b", &["list"]), ("a.b", &["rm"])];
    check("a_b__*", alike, &["list"]);
    check("a.b__*", alike, &["rm"]);
    check("a_*__rm", alike, &["rm"]);
    check("*_b__rm", alike, &["rm"]);
}

#[test]
fn a_rule_that_allows_names_a_server_and_a_tool() {
    let check = |allow: &str, list: &[(&str, &[&str])], expected: &[&str]| {
        assert_eq!(allowed(allow, list).0, expected, "{allow}");
    };
    let spoof: &[(&str, &[&str])] = &[("a", &["rm"]), ("b", &["a__rm", "ls"])];
    check("a__rm", spoof, &["rm"]);
    check("a__*", spoof, &["rm"]);
    check("a_*", spoof, &["rm"]);
    check("*__rm", spoof, &["rm"]);
    check("rm", spoof, &["rm"]);
    check("b__a__rm", spoof, &["a__rm"]);
    check("b__*", spoof, &["a__rm", "ls"]);
    check("*", spoof, &["rm", "a__rm", "ls"]);
    // A name that two servers have is nobody's.
    let both: &[(&str, &[&str])] = &[("a", &["rm"]), ("b", &["rm"])];
    check("rm", both, &[]);
    check("b__rm", both, &["b__rm"]);
    // What `duologue tools` prints can be typed, and so can the name as the server has it.
    let odd: &[(&str, &[&str])] = &[("my server", &["a.b"])];
    check("my_server__a_b", odd, &["my_server__a_b"]);
    check("my server__a.b", odd, &["my_server__a_b"]);
}

#[test]
fn a_made_name_takes_nobodys() {
    // The last server's own tool has the name that would be made for the first one.
    let list: &[(&str, &[&str])] = &[("a", &["x"]), ("b", &["x"]), ("c", &["a__x"])];
    let names = names(&[], list);
    assert_eq!(names[2], "a__x");
    assert!(names[0].starts_with("a__x_") && names[0].len() == 13, "{names:?}");
    assert_eq!(names[1], "b__x");
}

#[test]
fn names_that_become_the_same_stay_two() {
    let names = names(&[], &[("s", &["a.b", "a/b"])]);
    assert_eq!(names[0], "s__a_b");
    assert!(names[1].starts_with("s__a_b_"), "{names:?}");
}

#[test]
fn long_names_are_cut_with_a_hash() {
    let (one, two) = ("x".repeat(64) + "1", "x".repeat(64) + "2");
    let names = names(&[], &[("s", &[&one, &two])]);
    assert_ne!(names[0], names[1]);
    assert!(names.iter().all(|name| is_valid(name) && name.len() == 64), "{names:?}");
}

#[test]
fn a_tool_is_found_by_the_name_that_is_shown() {
    let catalogue = Catalogue::new(&[client("x")], &servers(&[("fs", &["x"])]));
    let source = |name: &str| catalogue.find(name).map(|entry| entry.source.clone());
    assert_eq!(source("x"), Some(Source::Client { human: false }));
    let server = ServerName::new("fs").expect("a name");
    assert_eq!(source("fs__x"), Some(Source::Server { server, tool: "x".to_owned() }));
    assert_eq!(source("fs__y"), None);
    assert_eq!(Catalogue::default().entries().len(), 0);
}

#[test]
fn a_definition_is_that_of_one_tool_of_one_server() {
    let definition = |server: &str, tool: ServerTool| {
        let server = ServerName::new(server).expect("a name");
        Catalogue::new(&[], &BTreeMap::from([(server, vec![tool])])).entries()[0].definition
    };
    let described = ServerTool { description: "reads".to_owned(), ..tool("read") };
    let takes_path = schema(json!({"type": "object", "properties": {"path": {}}}));
    let definitions = [
        definition("a", tool("read")),
        definition("b", tool("read")),
        definition("a", tool("rea")),
        definition("a", described),
        definition("a", ServerTool { input_schema: takes_path, ..tool("read") }),
        Catalogue::new(&[client("read")], &BTreeMap::new()).entries()[0].definition,
    ];
    let distinct: BTreeSet<_> = definitions.iter().collect();
    assert_eq!(distinct.len(), definitions.len());
    // A name that is shown differently, because another server came, is the same tool.
    let both = Catalogue::new(&[], &servers(&[("a", &["read"]), ("b", &["read"])]));
    assert_eq!(both.find("a__read").map(|entry| entry.definition), Some(definitions[0]));
}

proptest! {
    #[test]
    fn every_name_is_valid_and_none_is_given_twice(
        tools in proptest::collection::vec(("[ab./é]{1,3}", "[ab_./é]{0,4}|x{60,70}"), 0..30),
        clients in proptest::collection::vec("[ab_]{1,4}", 0..5),
    ) {
        let mut list: BTreeMap<ServerName, Vec<ServerTool>> = BTreeMap::new();
        for (server, name) in &tools {
            let server = ServerName::new(server).expect("a name");
            list.entry(server).or_default().push(tool(name));
        }
        let clients: Vec<_> = clients.iter().map(|name| client(name)).collect();
        let catalogue = Catalogue::new(&clients, &list);
        let entries = catalogue.entries();
        let names: BTreeSet<_> = entries.iter().map(|it| it.spec.name.clone()).collect();
        prop_assert_eq!(names.len(), entries.len());
        prop_assert!(names.iter().all(|name| is_valid(name)), "{:?}", names);
        // The order in which a server lists its tools makes no difference.
        for tools in list.values_mut() {
            tools.reverse();
        }
        let again = Catalogue::new(&clients, &list);
        prop_assert_eq!(catalogue.entries(), again.entries());
    }
}
