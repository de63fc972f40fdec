//! What each output must be, however the run ended: its reader can read all of it.

use crate::frames::Frame;
use crate::once::Ended;
use crate::oracle::{Answers, Output, check_output};
use crate::stream_events;
use serde_json::Value;

/// What standard output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Json,
    Yaml,
    Objects,
    /// The protocol, of one run.
    OneShot,
    /// The protocol, of a conversation with so many requests.
    Conversation(usize),
    /// All frames of a conversation, in one document.
    Frames,
    Events,
}

impl Shape {
    /// Checks what a process left behind, apart from what its answer says.
    #[track_caller]
    pub(crate) fn check(self, ended: &Ended) {
        let Ended { status, stdout, stderr } = ended;
        let is_well = matches!(status, 0 | 3);
        match self {
            Self::Text => {
                assert!(stdout.is_empty() || stdout.ends_with('\n'), "{stdout}");
                assert!(!stdout.contains("duologue:"), "not the answer: {stdout}");
            }
            Self::Json | Self::Frames => {
                let is_one_answer = self == Self::Json;
                check_envelope(&serde_json::from_str(stdout).expect("JSON"), is_one_answer, ended);
                assert!(stdout.ends_with('\n'));
            }
            Self::Yaml => {
                check_envelope(&serde_saphyr::from_str(stdout).expect("YAML"), true, ended);
                assert!(stdout.ends_with('\n'));
            }
            Self::Objects => check_objects(ended),
            Self::OneShot => check_one_shot(ended),
            Self::Conversation(requests) => {
                check_protocol(stdout, requests, is_well);
            }
            Self::Events => {
                stream_events::events(stdout, *status).unwrap_or_else(|why| panic!("{why}"));
            }
        }
        let is_complaint =
            |line: &&str| line.starts_with("duologue: ") || line.starts_with("error: ");
        let complaints = stderr.lines().filter(is_complaint).count();
        // In a conversation the client gets the error.
        let is_reported = self != Self::Frames && !matches!(self, Self::Conversation(_));
        assert!(complaints <= 1, "one fault, one error: {stderr}");
        assert_eq!(
            complaints == 1,
            !is_well && (is_reported || *status == 2),
            "{status}: {stderr}"
        );
    }
}

/// `is_one_answer`: its end is that of the process.
fn check_envelope(document: &Value, is_one_answer: bool, ended: &Ended) {
    let is_well = matches!(ended.status, 0 | 3);
    assert_eq!(document["ok"], is_well, "{document}");
    assert_eq!(document["error"].is_null(), is_well, "{document}");
    assert_eq!(document["meta"]["exit_code"], ended.status, "{document}");
    if is_one_answer {
        let is_truncated = document["meta"]["truncated"] == true;
        assert_eq!(is_truncated && is_well, ended.status == 3, "{document}");
    }
    assert!(document["warnings"].is_array(), "{document}");
    let keys: Vec<_> = document.as_object().expect("a map").keys().collect();
    assert_eq!(keys, ["ok", "data", "error", "warnings", "meta"]);
    if let (Some(data), Some(total)) = (document["data"].as_array(), document["meta"].get("total"))
    {
        assert_eq!(*total, data.len());
    }
}

fn check_objects(ended: &Ended) {
    assert!(ended.stdout.is_empty() || ended.stdout.ends_with('\n'));
    let lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["_format"], "jsonl");
    let errors: Vec<_> = lines.iter().filter(|line| line.get("_error").is_some()).collect();
    assert_eq!(errors.len(), usize::from(!matches!(ended.status, 0 | 3)), "{errors:?}");
    assert!(errors.iter().all(|line| line["_format"] == "jsonl"), "{errors:?}");
}

fn check_one_shot(ended: &Ended) {
    let has_asked = ended.stdout.contains("ChatUserMessageAccepted");
    let frames = check_protocol(&ended.stdout, usize::from(has_asked), has_asked);
    assert!(frames[1].is_snapshot(), "the state before the run");
    assert!(frames.last().is_some_and(|frame| frame.done().is_some()), "done is last");
    let errors: Vec<_> = frames.iter().filter(|frame| frame.error().is_some()).collect();
    assert_eq!(errors.len(), usize::from(!matches!(ended.status, 0 | 3)), "{errors:?}");
    assert!(errors.iter().all(|error| error.0["error"]["terminal"] == true), "{errors:?}");
}

/// What of the protocol holds for all; gives its frames.
#[track_caller]
pub(crate) fn check_protocol(stdout: &str, requests: usize, has_no_farewell: bool) -> Vec<Frame> {
    let mut lines: Vec<Vec<u8>> = stdout.split('\n').map(|line| line.as_bytes().to_vec()).collect();
    let rest = lines.pop().unwrap_or_default();
    let answers = if has_no_farewell { Answers::All } else { Answers::AllAndFarewell };
    check_output(&Output { lines, rest }, requests, answers)
}
