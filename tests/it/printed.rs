//! `--print-prompt`: what would be asked is printed, wherever it comes from.

use crate::once::run;
use crate::server::Folder;
use std::fs;

#[test]
fn a_printed_prompt_has_the_system_prompt_of_the_profile() {
    let folder = Folder::new();
    let profiles = "profiles: {p: {engine: echo, system: of the profile}}\n";
    fs::write(folder.path("profiles.yaml"), profiles).expect("a file");
    fs::write(folder.path("ask.yaml"), "name: ask\nprompt: hi\n").expect("a file");
    let commands: [&[&str]; 2] = [&["exec", "hi"], &["run-command", "ask.yaml"]];
    for command in commands {
        let print = |options: &[&str]| {
            let chosen = ["--profile-registries", "profiles.yaml", "--profile", "p"];
            let words = [command, &chosen, &["--print-prompt"], options].concat();
            let ended = run(&folder, &words);
            assert_eq!(ended.status, 0, "{ended:?}");
            ended
        };
        assert_eq!(print(&[]).stdout, "[system]\nof the profile\n\n[user]\nhi\n");
        let more = print(&["--append-system", "more"]);
        assert_eq!(more.stdout, "[system]\nof the profile\n\nmore\n\n[user]\nhi\n");
        assert_eq!(print(&["--system", "own"]).stdout, "[system]\nown\n\n[user]\nhi\n");
        assert_eq!(print(&["--system", ""]).stdout, "hi\n");
        // A session that begins has nothing else.
        assert_eq!(print(&["--session", "new"]).stderr, "");
    }
    let begun = run(&folder, &["exec", "hi", "--engine", "echo", "--session", "s"]);
    assert_eq!(begun.status, 0, "{begun:?}");
    let ended = run(&folder, &["exec", "hi", "--session", "s", "--print-prompt"]);
    assert_eq!(ended.stdout, "hi\n", "{ended:?}");
    assert!(ended.stderr.contains("leaves out what is stored"), "{ended:?}");
}

/// A script that checks what it would ask, and then asks it, gets the same error both times.
#[test]
fn a_prompt_that_a_run_refuses_is_not_printed() {
    let folder = Folder::new();
    fs::write(folder.path("ask.yaml"), "flags: [{name: x, type: string}]\nprompt: '{{ .x }}'\n")
        .expect("a file");
    fs::write(folder.path("goes-on.yaml"), "system-prompt: Be brief.\nprompt: ''\n")
        .expect("a file");
    for words in [&["exec", " "][..], &["run-command", "ask.yaml", "--x", " "]] {
        for more in [&[][..], &["--print-prompt"]] {
            let ended = run(&folder, &[words, &["--engine", "echo"], more].concat());
            assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
            assert!(ended.stderr.contains("the prompt is blank"), "{ended:?}");
            let document = [words, &["--engine", "echo", "--output", "json"], more].concat();
            let document = run(&folder, &document).stdout;
            assert!(document.contains("\"code\": \"empty_prompt\""), "{document}");
        }
    }
    let shown = run(&folder, &["run-command", "goes-on.yaml", "--print-prompt"]);
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "[system]\nBe brief.\n"), "{shown:?}");
    for words in [&["exec", "hi"][..], &["run-command", "ask.yaml", "--x", "hi"]] {
        let ended = run(&folder, &[words, &["--print-prompt", "--save", "answer"]].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains("--save"), "{ended:?}");
        assert!(!folder.path("answer").exists());
    }
}
