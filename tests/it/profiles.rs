//! Profiles: what they name, what wins over what, and settings of calls.

use crate::frames::Frame;
use crate::once::{Ended, Once, duologue};
use crate::oracle::Answers;
use crate::provider::{Provider, says};
use crate::server::{Folder, Launch};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A home with a file of profiles, and a project in it.
pub(crate) struct Scene {
    pub(crate) folder: Folder,
}

pub(crate) const KEY: &str = "sk-a-key-of-the-profile";

impl Scene {
    /// `user` and `project` are what the files hold; a blank one is none.
    pub(crate) fn new(user: &str, project: &str) -> Self {
        let folder = Folder::new();
        for (path, text) in
            [("config/duologue/profiles.yaml", user), ("project/.duologue/profiles.yaml", project)]
        {
            let path = folder.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            if !text.is_empty() {
                fs::write(path, text).expect("a file");
            }
        }
        fs::create_dir_all(folder.path("project/deep")).expect("a folder");
        Self { folder }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = duologue(&self.folder, words);
        command
            .current_dir(self.folder.path("project/deep"))
            .env("HOME", self.folder.path(""))
            .env("XDG_CONFIG_HOME", self.folder.path("config"))
            .env("XDG_STATE_HOME", self.folder.path("state"));
        command
    }

    /// `duologue <words>` to its end.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        let mut once = Once::start(self.command(words));
        once.close_stdin();
        let ended = once.finish();
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!all.contains(KEY), "a key is shown: {all}");
        assert!(!all.contains("panicked"), "{all}");
        ended
    }

    pub(crate) fn launch(&self, words: &[&str]) -> Launch {
        Launch::new(words)
            .env("HOME", self.folder.path(""))
            .env("XDG_CONFIG_HOME", self.folder.path("config"))
    }

    pub(crate) fn project_file(&self) -> String {
        self.folder.name("project/.duologue/profiles.yaml")
    }
}

/// The profile `work`, whose key a command prints.
pub(crate) fn with_command(provider: &Provider) -> String {
    format!(
        "profiles:\n  work:\n    engine: openai\n    model: scripted\n    base-url: {}\n    \
         system: Be brief.\n    key-command: [sh, -c, 'echo {KEY}']\n    extra-headers: {{X-Team: \
         blue}}\n    settings: {{extra-body: {{service_tier: flex}}}}\n",
        provider.base_url()
    )
}

#[test]
fn a_profile_names_everything_that_a_call_needs() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new(&with_command(&provider), "");
    let ended = scene.run(&["exec", "hi", "--profile", "work"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "hello\n"), "{ended:?}");
    let request = provider.wait_request(1);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.body["service_tier"], "flex");
    assert_eq!(request.body["messages"][0]["content"], "Be brief.");
}

#[test]
fn options_win_over_variables_and_variables_over_the_profile() {
    let provider = Provider::start(vec![says("a"), says("b"), says("c")]);
    let scene = Scene::new(&with_command(&provider), "");
    let mut by_profile = scene.command(&["exec", "hi"]);
    by_profile.env("DUOLOGUE_PROFILE", "work");
    let mut by_variable = scene.command(&["exec", "hi", "--profile", "work"]);
    by_variable.env("DUOLOGUE_MODEL", "of-the-variable").env("DUOLOGUE_SYSTEM", "Variable.");
    let words = ["exec", "hi", "--profile", "work", "--model", "of-the-option", "-O"];
    let body = "extra_body={service_tier: default}";
    let mut by_option = scene.command(&[&words[..], &[body, "--header", "X-Team: red"]].concat());
    by_option.env("DUOLOGUE_MODEL", "of-the-variable").env("DUOLOGUE_PROFILE", "none");
    for command in [by_profile, by_variable, by_option] {
        let mut once = Once::start(command);
        once.close_stdin();
        let ended = once.finish();
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    let models = [1, 2, 3].map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models, ["scripted", "of-the-variable", "of-the-option"]);
    assert_eq!(provider.wait_request(2).body["messages"][0]["content"], "Variable.");
    let last = provider.wait_request(3);
    assert_eq!(last.body["service_tier"], "default");
    assert_eq!(last.header("x-team"), Some("red"));
}

#[test]
fn what_can_never_work_is_in_hello_and_the_server_starts() {
    let scene = Scene::new(
        "profiles:\n  a: {base-url: 'http://h/v1', model: m, key-variable: NOT_SET}\n",
        "",
    );
    let check = |words: &[&str], expected: &str, engine: &str| {
        let mut server = scene.launch(words).start();
        let hello = server.wait_hello();
        let hello = hello.0["hello"]["capabilities"].to_string();
        assert!(hello.contains("config-error=") && hello.contains(expected), "{hello}");
        assert!(hello.contains(&format!("\"engine={engine}\"")), "{hello}");
        assert_eq!(server.turn("r1", "hi"), "failed");
        let frames = server.finish().frames;
        let error = frames.iter().find_map(|frame| frame.0.get("error")).expect("an error");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&["rpc", "--base-url", "http://127.0.0.1:9/v1"], "no model is named", "openai");
    check(&["rpc", "--base-url", "h/v1", "--model", "m"], "does not begin with http", "openai");
    check(&["rpc", "--engine", "anthropic"], "requires a key", "anthropic");
    check(&["rpc", "--profile", "b"], "there is no profile `b`; there are a", "none");
    check(&["rpc", "--profile", "a"], "the variable NOT_SET", "openai");
    let wrong = scene.folder.path("config/duologue/profiles.yaml");
    fs::write(&wrong, "profiles:\n  a:\n    modle: x\n").expect("a file");
    check(&["rpc", "--profile", "a"], "profiles.yaml:3: a profile has no key `modle`", "none");
    // A command that runs one prompt says so at once.
    let ended = scene.run(&["exec", "hi", "--profile", "a"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    // Where no profile is named, its files decide nothing.
    let ended = scene.run(&["exec", "hi", "--engine", "echo"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "Turn 1. You said: hi\n"), "{ended:?}");
}

#[test]
fn profiles_of_pinocchio_are_taken_from_named_files() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new("", "");
    let path = scene.folder.name("pinocchio.yaml");
    let text = format!(
        "mine:\n  ai-chat:\n    ai-engine: scripted\n    ai-api-type: openai\n    \
         ai-something: 1\n  openai-chat:\n    openai-api-key: {KEY}\n    openai-base-url: {}\n",
        provider.base_url()
    );
    fs::write(&path, text).expect("a file");
    let words = ["exec", "hi", "--profile", "mine", "--profile-registries", &path];
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
    let open = scene.run(&words);
    assert!(open.status == 2 && open.stderr.contains("chmod 600"), "{open:?}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
    let ended = scene.run(&words);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "hello\n"), "{ended:?}");
    assert!(ended.stderr.contains("pinocchio.yaml:5: `ai-something`"), "{ended:?}");
    let request = provider.wait_request(1);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.body["model"], "scripted");
}

#[test]
fn the_default_profile_of_a_registry_of_pinocchio_is_used() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new("", "");
    let url = provider.base_url();
    let profile = |name: &str, model: &str| {
        format!(
            "  {name}:\n    inference_settings:\n      chat: {{api_type: openai, engine: {model}}}\n      \
             api: {{api_keys: {{openai-api-key: {KEY}}}, base_urls: {{openai-base-url: \"{url}\"}}}}\n"
        )
    };
    let (one, two) = (profile("one", "first"), profile("default", "second"));
    let text = format!("slug: team\ndefault_profile_slug: one\nprofiles:\n{one}{two}");
    let path = scene.folder.name("registry.yaml");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
    let ended = scene.run(&["exec", "hi", "--profile-registries", &path]);
    let outcome = (ended.status, ended.stdout.as_str(), ended.stderr.as_str());
    assert_eq!(outcome, (0, "hello\n", ""), "{ended:?}");
    assert_eq!(provider.wait_request(1).body["model"], "first");
}

#[test]
fn option_names_of_pinocchio_are_taken() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new("", "");
    let url = provider.base_url();
    let words = [
        "exec",
        "hi",
        "--ai-api-type",
        "openai",
        "--ai-engine",
        "m",
        "--openai-base-url",
        &url,
        "--timeout",
        "30",
        "--log-to-stdout",
        "--config-file",
        "x.yaml",
        "--ai-temperature",
        "0.5",
        "--ai-max-response-tokens",
        "9",
        "--ai-stop",
        "END",
        "--ai-stream",
    ];
    let ended = scene.run(&words);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "hello\n"), "{ended:?}");
    for option in ["--log-to-stdout", "--config-file", "--ai-stream"] {
        assert!(ended.stderr.contains(&format!("{option} is ignored")), "{ended:?}");
    }
    assert_eq!(provider.wait_request(1).body["model"], "m");
    let refused = scene.run(&["exec", "hi", "--api-key", "x"]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("OPENAI_API_KEY"), "{refused:?}");
}

#[test]
fn a_wrong_setting_is_refused_and_no_header_is_shown() {
    let scene = Scene::new("", "");
    for (words, expected) in [
        (&["--temperature", "3"][..], "--temperature: temperature must be a number from 0 to 2"),
        (&["-O", "temprature=1"], "there is no setting"),
        (&["--header", KEY], "--header is written as"),
        (&["--key-command", "sh 'x"], "quotes that don't match"),
    ] {
        let ended = scene.run(&[&["exec", "hi", "--engine", "echo"], words].concat());
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let transcript = scene
        .launch(&["rpc", "--engine", "echo", "--temperature", "hot"])
        .start()
        .finish_with(2, Answers::AllAndFarewell);
    let error = transcript.frames.iter().find_map(|Frame(frame)| frame.get("error"));
    assert!(error.expect("an error").to_string().contains("--temperature"), "{error:?}");
}

#[test]
fn a_command_file_has_settings_over_variables_and_under_options() {
    let provider = Provider::start((0..4).map(|_| says("hello")).collect());
    let scene = Scene::new(&with_command(&provider), "");
    let file = scene.folder.name("ask.yaml");
    let write = |text: &str| fs::write(&file, format!("{text}\nprompt: hi\n")).expect("a file");
    let run = |words: &[&str]| {
        let words = [&["run-command", &file, "--profile", "work"], words].concat();
        let mut command = scene.command(&words);
        command.env("DUOLOGUE_MODEL", "of-the-variable");
        let mut once = Once::start(command);
        once.close_stdin();
        once.finish()
    };
    let own = "settings:\n  model: of-the-file\n  extra_body: {service_tier: file}";
    write(own);
    assert_eq!(run(&[]).stdout, "hello\n");
    let typed = ["--model", "typed", "--extra-body", r#"{"service_tier":"typed"}"#];
    assert_eq!(run(&typed).stdout, "hello\n");
    let factories = "factories:\n  chat:\n    engine: of-pinocchio\n    stream: true\n    stop: []\n    \
                     api_type: openai\n    logit: 1\n  client: {timeout: 3}";
    write(factories);
    let ended = run(&[]);
    assert_eq!(ended.stdout, "hello\n", "{ended:?}");
    assert!(ended.stderr.contains("ask.yaml:7: `chat.logit` in `factories`"), "{ended:?}");
    assert!(ended.stderr.contains("ask.yaml:8: `client.timeout`"), "{ended:?}");
    let other =
        run(&["--engine", "anthropic", "--base-url", "http://127.0.0.1:1", "--retries", "0"]);
    assert!(other.stderr.contains("its model are ignored"), "{other:?}");
    let request = |number| provider.wait_request(number).body;
    let seen = [1, 2, 3].map(|number| request(number)["model"].clone());
    assert_eq!(seen, ["of-the-file", "typed", "of-pinocchio"]);
    assert_eq!(request(1)["service_tier"], "file");
    assert_eq!(request(2)["service_tier"], "typed");
    write("settings:\n  temperature: hot");
    let wrong = run(&[]);
    assert!(
        wrong.status == 2 && wrong.stderr.contains("ask.yaml:2: `settings`: temperature"),
        "{wrong:?}"
    );
    write("flags:\n  - {name: timeout, type: string}\n  - {name: temperature, type: string}");
    assert_eq!(run(&["--timeout", "x", "--temperature", "y"]).stdout, "hello\n");
}

/// A request can choose a profile, which brings its own key; the general key stays where it was.
#[test]
fn a_request_chooses_a_profile_with_its_own_key() {
    let provider = Provider::start(vec![says("hello")]);
    let keyless = Provider::start(vec![says("hello")]);
    let user = with_command(&provider)
        + &format!(
            "  other:\n    engine: openai\n    model: m\n    base-url: {}\n  broken: {{engine: openai, \
             base-url: 'http://h', model: m, key-variable: NOT_SET}}\n",
            keyless.base_url()
        );
    let scene = Scene::new(&user, "");
    let mut server = scene
        .launch(&["rpc", "--engine", "echo"])
        .secret("DUOLOGUE_API_KEY", "sk-of-the-first-provider")
        .start();
    for (id, profile, end) in
        [("r1", "work", "ok"), ("r2", "other", "ok"), ("r3", "broken", "failed")]
    {
        server.send(format!(r#"{{"requestId":"s{id}","switchModel":{{"profile":"{profile}"}}}}"#));
        assert_eq!(server.wait_done(&format!("s{id}")), "ok");
        assert_eq!(server.turn(id, "hi"), end, "{profile}");
    }
    let frames = server.finish().frames;
    let errors: Vec<_> = frames.iter().filter_map(|frame| frame.0.get("error")).collect();
    assert!(errors.iter().any(|error| error.to_string().contains("NOT_SET")), "{errors:?}");
    let authorization =
        |provider: &Provider| provider.wait_request(1).header("authorization").map(str::to_owned);
    assert_eq!(authorization(&provider), Some(format!("Bearer {KEY}")));
    assert_eq!(authorization(&keyless), None);
}
