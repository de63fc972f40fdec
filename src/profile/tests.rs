//! Files of profiles and what they come to.

use super::files::ProfileFile;
use super::resolve::Omission;
use super::*;
use crate::tool::config::Protected;
use std::path::Path;
use std::sync::Arc;

fn file(layer: Layer, text: &str) -> ProfileFile {
    let is_trusted = layer != Layer::Project;
    let path = Arc::from(Path::new("/p").join(layer.as_str()).join("profiles.yaml"));
    ProfileFile { layer, path, text: Protected::new(text), is_trusted, is_open_to_others: false }
}

fn profiles(files: &[(Layer, &str)]) -> Profiles {
    let files = files.iter().map(|(layer, text)| file(*layer, text)).collect();
    Profiles::read(files, Some(Path::new("/home/me"))).expect("right files")
}

/// The values of a profile as `name=value@layer:line`.
fn values(resolved: &Resolved) -> Vec<String> {
    let values = resolved.values.iter().map(|Sourced { item, origin }| {
        let value = item.shown();
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={value}@{}:{}", item.name(), origin.layer.as_str(), origin.line)
    });
    values.collect()
}

#[track_caller]
fn error(text: &str) -> String {
    let read = Profiles::read(vec![file(Layer::User, text)], None);
    read.expect_err("a wrong file").to_string()
}

const USER: &str = "\
profiles:
  base:
    engine: openai
    model: small
    settings: {temperature: 0.2, max_tokens: 100}
    deny: [\"rm*\"]
  work:
    inherits: base
    base-url: https://ai.example.com/v1
    key-command: [pass, show, work]
    model: large
    settings:
      temperature: 0.7
    extra-headers: {X-Team: blue-team-key}
    allow: [\"read*\"]
    approval: deny
";

#[test]
fn later_files_win_and_lists_of_rules_add_up() {
    let system = "profiles: {base: {model: tiny, system: Be brief., deny: [\"format*\"]}}";
    let named = "profiles:\n  work:\n    key-file: ~/key\n    model: largest\n";
    let files = [(Layer::System, system), (Layer::User, USER), (Layer::Named, named)];
    let profiles = profiles(&files);
    assert_eq!(profiles.names().into_iter().collect::<Vec<_>>(), ["base", "work"]);
    let resolved = profiles.resolve("work").expect("a profile");
    assert_eq!(
        values(&resolved),
        [
            "system=Be brief.@system:1",
            "deny=[\"format*\"]@system:1",
            "engine=openai@user:3",
            "settings.max-tokens=100@user:5",
            "deny=[\"rm*\"]@user:6",
            "base-url=https://ai.example.com/v1@user:9",
            "settings.temperature=0.7@user:13",
            "extra-headers.X-Team=[not shown]@user:14",
            "allow=[\"read*\"]@user:15",
            "approval=deny@user:16",
            "key-file=the file /home/me/key@named:3",
            "model=largest@named:4",
        ]
    );
    assert_eq!(resolved.withheld, []);
    assert!(resolved.refusal().is_none());
}

#[test]
fn a_profile_inherits_from_others_and_not_from_itself() {
    let check = |text: &str, name: &str, expected: &str| {
        let error = profiles(&[(Layer::User, text)]).resolve(name).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{error}");
    };
    let circle = "profiles:\n  a: {inherits: b}\n  b: {inherits: a}\n";
    check(circle, "a", "/p/user/profiles.yaml:3: `a` inherits from itself");
    check("profiles:\n  a:\n    inherits: x\n", "a", "profiles.yaml:3: there is no profile `x`");
    check("profiles: {a: {}, b: {}}", "x", "there is no profile `x`; there are a, b");
    check("profiles: {}", "x", "no file of profiles was found");
    let long: String = (0..20).map(|at| format!("  p{at}: {{inherits: p{}}}\n", at + 1)).collect();
    check(&format!("profiles:\n{long}"), "p0", "more than 16 profiles");
}

#[test]
fn a_wrong_file_is_an_error_with_its_line() {
    let check = |text: &str, expected: &str| {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("profiles:\n  a:\n    modle: x\n", "profiles.yaml:3: a profile has no key `modle`");
    check(
        "profiles:\n  a:\n    base_url: x\n",
        ":3: a profile has no key `base_url`; did you mean `base-url`?",
    );
    check("profiles:\n  a:\n    api-key: sk-0123\n", ":3: a key does not belong in a file");
    check("profles: {}\n", ":1: a file has no key `profles`; known keys are default, profiles");
    check("profiles: [a]\n", ":1: `profiles` must be a map, not a list");
    check("profiles: {a: 1}\n", "the profile `a` must be a map, not an integer");
    check("profiles:\n  a:\n    model: [x]\n", ":3: `model` must be a string, not a list");
    check("profiles:\n  a:\n    model:\n", ":3: `model` has no value");
    check(
        "profiles:\n  a:\n    key-command: pass show x\n",
        ":3: `key-command` is a list of words",
    );
    check("profiles:\n  a:\n    key-command: []\n", ":3: `key-command` is a list of words");
    check("profiles:\n  a:\n    approval: maybe\n", ":3: `approval` must be auto, ask or deny");
    check("profiles:\n  a:\n    settings: {tempo: 1}\n", ":3: ");
    check("profiles:\n  a:\n    settings:\n      extra-headers: {}\n", "beside `settings`");
    check(
        "profiles:\n  a:\n    extra-headers: {\"X Y\": z}\n",
        ":3: in `extra-headers`, a header is",
    );
    check("profiles:\n  a: {key-file: x, key-variable: Y}\n", "keep one");
    check("profiles:\n  a: {}\n  a: {}\n", ":3: it is not valid YAML: the key `a` occurs");
    check("profiles:\n  a: \"\n", "it is not valid YAML");
    check(&"[".repeat(100), "nested");
    check(&"#".repeat(FILE_BYTES_MAX + 1), "larger than");
    let many: String = (0..=PROFILES_MAX).map(|at| format!("  p{at}: {{}}\n")).collect();
    check(&format!("profiles:\n{many}"), "more than 1000 profiles");
}

#[test]
fn a_header_that_was_put_in_the_place_of_its_name_is_not_shown() {
    for headers in ["{\"Authorization: Bearer SECRET9\"}", "{Authorization Bearer SECRET9: x}"] {
        let error = error(&format!("profiles:\n  a:\n    extra-headers: {headers}\n"));
        assert!(error.contains("a header is a name and a value"), "{error}");
        assert!(!error.contains("SECRET9"), "{error}");
    }
}

#[test]
fn a_key_that_was_put_in_the_place_of_a_variable_is_not_shown() {
    let error = error("profiles:\n  a:\n    key-variable: sk-proj-0123\n");
    assert!(error.contains(":3: `key-variable` is the name") && !error.contains("0123"), "{error}");
}

fn of_project(text: &str) -> Resolved {
    let files = [(Layer::User, USER), (Layer::Project, text)];
    profiles(&files).resolve("work").expect("a profile")
}

#[test]
fn a_project_that_is_not_trusted_says_what_harms_nobody() {
    let text = "profiles:\n  work:\n    model: other\n    system: Help.\n    deny: [x]\n    \
                settings: {temperature: 1}\n    approval: deny\n    engine: openai\n    \
                base-url: https://ai.example.com/v1/\n";
    let resolved = of_project(text);
    assert_eq!(resolved.withheld, []);
    let values = values(&resolved);
    for value in ["model=other@project:3", "system=Help.@project:4", "deny=[\"x\"]@project:5"] {
        assert!(values.iter().any(|it| it == value), "{values:?}");
    }
    // What says the same keeps its origin.
    assert!(values.contains(&"engine=openai@user:3".to_owned()), "{values:?}");
}

#[test]
fn a_project_that_is_not_trusted_sends_no_key_elsewhere() {
    let refused = [
        "base-url: https://evil.example/v1",
        "base-url: https://ai.example.com.evil.example/v1",
        "engine: anthropic",
        "key-variable: AWS_SECRET_ACCESS_KEY",
        "key-command: [rm, -rf, /]",
        "key-file: /etc/shadow",
    ];
    for line in refused {
        let resolved = of_project(&format!("profiles:\n  work:\n    {line}\n"));
        let name = line.split(':').next().expect("a name");
        let refusal = resolved.refusal().expect(line).to_string();
        assert!(refusal.contains("/p/project/profiles.yaml:3: "), "{refusal}");
        assert!(refusal.contains(&format!("its `{name}`")), "{refusal}");
        assert!(refusal.contains("duologue profiles trust /p/project/profiles.yaml"), "{refusal}");
        assert!(!values(&resolved).iter().any(|value| value.contains("@project")), "{line}");
    }
    // Nor to an address of another profile of the person's own, nor to another provider.
    let user = format!(
        "{USER}  local: {{base-url: 'http://b/v1'}}\n  priv: {{engine: ollama}}\n  \
                        mine: {{inherits: priv}}\n  plain: {{model: m}}\n"
    );
    for (project, item) in [
        ("work: {base-url: 'http://b/v1'}", "base-url"),
        ("base: {base-url: 'http://b/v1'}, work: {inherits: base}", ""),
        ("work: {inherits: local}", "inherits"),
        ("work: {inherits: none}, none: {}", "inherits"),
        ("base: {inherits: local}", "inherits"),
        ("local: {inherits: work}", "inherits"),
        ("priv: {engine: openai}", "engine"),
        ("mine: {engine: openai}", "engine"),
        ("plain: {engine: openai}", "engine"),
        ("new: {inherits: mine, engine: openai}", "engine"),
        ("new: {inherits: work, base-url: 'http://b/v1'}", "base-url"),
        ("new: {base-url: 'http://b/v1'}", "base-url"),
    ] {
        let project = format!("profiles: {{{project}}}");
        let read = profiles(&[(Layer::User, &user), (Layer::Project, &project)]);
        let name = ["new", "mine", "priv", "plain", "local"];
        let name = name.into_iter().find(|name| project.contains(&format!("{{{name}:")));
        let resolved = read.resolve(name.unwrap_or("work")).expect("a profile");
        let refusal = resolved.refusal().map(|error| error.to_string());
        match item {
            "" => assert_eq!(refusal, None, "{project}"),
            item => {
                let refusal = refusal.expect(&project);
                assert!(refusal.contains(&format!("its `{item}`")), "{project}: {refusal}");
            }
        }
    }
    // A profile of its own may choose an engine: that engine's own key goes to its own provider.
    let own = "profiles:\n  new:\n    engine: anthropic\n    model: m\n";
    let own = profiles(&[(Layer::User, USER), (Layer::Project, own)]);
    assert_eq!(own.resolve("new").expect("a profile").refusal(), None);
}

#[test]
fn what_a_project_that_is_not_trusted_adds_is_left_out() {
    let left_out = [
        ("mcp: {evil: {command: rm}}", "mcp.evil"),
        ("extra-headers: {X-A: b}", "extra-headers.X-A"),
        ("allow: [\"*\"]", "allow"),
        ("approval: auto", "approval"),
        ("approval: ask", "approval"),
        ("settings: {extra-body: {tools: []}}", "settings.extra-body"),
    ];
    for (line, name) in left_out {
        let resolved = of_project(&format!("profiles:\n  work:\n    {line}\n"));
        assert_eq!(resolved.refusal(), None, "{line}");
        let warnings: Vec<_> = resolved.warnings().collect();
        assert!(warnings[0].contains(&format!(":3: `{name}` is left out")), "{warnings:?}");
        assert_eq!(resolved.withheld[0].effect, Omission::LeftOut);
        assert!(!values(&resolved).iter().any(|value| value.contains("@project")), "{line}");
    }
    // Stricter than what applies without it.
    let ask = "profiles: {new: {approval: ask}}";
    let ask = profiles(&[(Layer::Project, ask)]).resolve("new").expect("a profile");
    assert_eq!(ask.withheld, []);
}

/// Whatever it holds, the person's own profiles are there.
#[test]
fn a_project_that_is_not_trusted_and_wrong_is_left_out() {
    for text in ["x: [", "profiles:\n  work:\n    modle: x\n", "profiles: []"] {
        let read = profiles(&[(Layer::User, USER), (Layer::Project, text)]);
        assert_eq!(read.names().into_iter().collect::<Vec<_>>(), ["base", "work"]);
        let warnings: Vec<_> = read.warnings().collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("/p/project/profiles.yaml:"), "{warnings:?}");
        assert!(warnings[0].contains("the file is left out"), "{warnings:?}");
    }
}

#[test]
fn a_trusted_project_says_everything() {
    let text =
        "profiles:\n  work:\n    base-url: https://evil.example\n    mcp: {x: {command: y}}\n";
    let mut trusted = file(Layer::Project, text);
    trusted.is_trusted = true;
    let read = Profiles::read(vec![file(Layer::User, USER), trusted], None).expect("right files");
    let resolved = read.resolve("work").expect("a profile");
    assert_eq!((resolved.refusal(), resolved.withheld.len()), (None, 0));
    let values = values(&resolved);
    assert!(values.contains(&"base-url=https://evil.example@project:3".to_owned()), "{values:?}");
    assert!(values.contains(&"mcp.x=command y@project:4".to_owned()), "{values:?}");
}

const SECTIONS: &str = "\
mistral:
  ai-chat:
    ai-engine: mistral-large
    ai-api-type: openai
    ai-temperature: 0.1
    ai-max-response-tokens: 4096
    ai-stop: [END]
    ai-stream: true
  openai-chat:
    openai-api-key: sk-of-openai
    openai-base-url: https://api.mistral.ai/v1
  claude-chat:
    claude-api-key: sk-of-claude
  ai-inference:
    inference-reasoning-effort: low
    inference-thinking-budget: 2048
  ai-client:
    timeout: 30
sonnet:
  ai-chat:
    ai-engine: claude-sonnet-5
    ai-api-type: claude
  claude-chat:
    claude-api-key: ${ANTHROPIC_API_KEY}
";

#[test]
fn sections_of_pinocchio_are_read() {
    let profiles = profiles(&[(Layer::Named, SECTIONS)]);
    let mistral = profiles.resolve("mistral").expect("a profile");
    assert_eq!(
        values(&mistral),
        [
            "model=mistral-large@named:3",
            "settings.temperature=0.1@named:5",
            "settings.max-tokens=4096@named:6",
            "settings.stop=[\"END\"]@named:7",
            "settings.reasoning-effort=low@named:15",
            "settings.reasoning-budget=2048@named:16",
            "engine=openai@named:4",
            "key=[not shown]@named:10",
            "base-url=https://api.mistral.ai/v1@named:11",
        ]
    );
    let sonnet = profiles.resolve("sonnet").expect("a profile");
    let sonnet = values(&sonnet);
    assert!(sonnet.contains(&"key-variable=the variable ANTHROPIC_API_KEY@named:24".to_owned()));
    assert!(sonnet.contains(&"engine=anthropic@named:22".to_owned()), "{sonnet:?}");
    let warnings: Vec<_> = profiles.warnings().collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("profiles.yaml:18: `timeout` of Pinocchio"), "{warnings:?}");
    assert!(!format!("{mistral:?}{profiles:?}").contains("sk-of-openai"));
}

#[test]
fn registries_of_pinocchio_are_read() {
    let text = "\
slug: mine
default_profile_slug: agent
profiles:
  base:
    slug: base
    inference_settings:
      chat: {api_type: openai-responses, engine: gpt-5-mini, max_response_tokens: 9}
      api: {api_keys: {openai-api-key: sk-x}, base_urls: {openai-base-url: https://h/v1}}
  agent:
    slug: agent
    display_name: Agent
    stack: [{profile_slug: base}]
    runtime:
      system_prompt: Act.
      middlewares: [{name: x}]
      step_settings_patch:
        ai-chat: {ai-engine: gpt-5}
";
    for text in [text.to_owned(), format!("registries:\n  r:\n{}", indented(text))] {
        let profiles = profiles(&[(Layer::Named, &text)]);
        let agent = profiles.resolve("agent").expect("a profile");
        let values: Vec<_> = values(&agent)
            .iter()
            .map(|it| it.split('@').next().expect("a value").to_owned())
            .collect();
        assert_eq!(
            values,
            [
                "settings.max-tokens=9",
                "engine=responses",
                "key=[not shown]",
                "base-url=https://h/v1",
                "system=Act.",
                "model=gpt-5",
            ]
        );
        let warnings: Vec<_> = profiles.warnings().collect();
        assert!(warnings.len() == 1 && warnings[0].contains("`middlewares`"), "{warnings:?}");
        let default = profiles.default_profile().expect("there is one");
        assert_eq!(default.map(|(name, _)| name), Some("agent"));
    }
}

/// Each of several registries has a default of its own.
#[test]
fn the_default_of_one_of_several_registries_is_reported() {
    let registry = "default_profile_slug: a\nprofiles:\n  a:\n    stack: []\n";
    let text = format!("registries:\n  r:\n{}  s:\n    profiles: {{}}\n", indented(registry));
    let profiles = profiles(&[(Layer::Named, &text)]);
    assert_eq!(profiles.default_profile().expect("none"), None);
    let warnings: Vec<_> = profiles.warnings().collect();
    assert!(warnings.len() == 1 && warnings[0].contains("`default_profile_slug`"), "{warnings:?}");
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn what_can_not_be_taken_of_pinocchio_is_named() {
    let unknown = "x:\n  ai-chat:\n    ai-api-type: cohere\n    ai-engine: m\n";
    let reported = error(unknown);
    assert!(reported.contains(":3: the type of API `cohere` is not known here"), "{reported}");
    let several = "slug: s\nprofiles:\n  a:\n    stack: [{profile_slug: b}, {profile_slug: c}]\n";
    let reported = error(several);
    assert!(reported.contains(":4: `stack` lists several profiles"), "{reported}");
}

#[test]
fn a_key_in_a_file_that_others_can_read_is_refused() {
    let mut open = file(Layer::User, SECTIONS);
    open.is_open_to_others = true;
    let error = Profiles::read(vec![open], None).expect_err("a key").to_string();
    assert!(error.contains("profiles.yaml:10: ") && error.contains("chmod 600"), "{error}");
    assert!(!error.contains("sk-of"), "{error}");
}

#[test]
fn an_untrusted_file_with_a_key_leaves_the_own_profiles() {
    let mut project = file(Layer::Project, SECTIONS);
    (project.is_trusted, project.is_open_to_others) = (false, true);
    let own = file(Layer::User, "profiles:\n  mine:\n    engine: echo\n");
    let profiles = Profiles::read(vec![own, project], None).expect("the person's own profiles");
    assert_eq!(profiles.names().into_iter().collect::<Vec<_>>(), ["mine"]);
    let warnings: Vec<_> = profiles.warnings().collect();
    assert!(matches!(&warnings[..], [one] if one.contains("left out")), "{warnings:?}");
    assert!(!warnings[0].contains("sk-of"), "{warnings:?}");
}
