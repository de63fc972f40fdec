//! How long a run goes on that nobody wants any more.

use crate::child::{Child, Program, submit};
use crate::provider::{Manner, Provider};
use crate::table::{Aim, Unit, quantile, row};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;

/// Submits that are sent together with their cancel.
const PAIRS: usize = 10_000;

/// Time for a request to reach its provider.
const ON_THE_WAY: Duration = Duration::from_millis(10);

const AIM: Aim = Aim::Value(0.3);

const STOPPED: &str = "\"done\":{\"status\":\"stopped\"}";

pub(crate) fn measure() -> io::Result<()> {
    let args = ["rpc", "--engine", "echo", "--echo-delay-ms", "1", "--final-snapshot", "turn"];
    let times = stop_times(&args, |child| child.line_with("\"name\":\"ChatTextPatch\""))?;
    rows("cancel to done in mid-stream", &times);

    let provider = Provider::start(Manner::Silent)?;
    let base_url = provider.base_url();
    let model = ["rpc", "--engine", "openai", "--base-url", base_url.as_str(), "--model", "model"];
    let args = [model.as_slice(), &["--final-snapshot", "turn"]].concat();
    let times = stop_times(&args, |_| {
        thread::sleep(ON_THE_WAY);
        Ok(())
    })?;
    rows("cancel to done with a silent provider", &times);

    let stopped = stopped_pairs()?;
    let what = format!("runs stopped, of {PAIRS} sent in one write with their cancel");
    row(&what, Unit::Count, stopped as f64, Some(PAIRS as f64), Aim::All);
    Ok(())
}

/// Milliseconds of a cancel, and of the minimal loop's answer to a word: what the machine is up to.
struct Times {
    cancel: Vec<f64>,
    word: Vec<f64>,
}

fn rows(what: &str, times: &Times) {
    for (name, part, aim) in [("median", 0.5, AIM), ("p99", 0.99, Aim::None)] {
        let (ours, reference) = (quantile(&times.cancel, part), quantile(&times.word, part));
        let what = format!("{what}, against a word from the minimal loop, {name}");
        row(&what, Unit::Millis, ours, Some(reference), aim);
    }
}

/// How long the `done` of a run takes from its cancel, which is sent once `when` returns.
fn stop_times(args: &[&str], when: impl Fn(&mut Child) -> io::Result<()>) -> io::Result<Times> {
    let mut child = Child::greeted(Program::Duologue, args)?;
    let mut minimal = Child::greeted(Program::MinimalLoop, &[])?;
    let mut times = Times { cancel: Vec::new(), word: Vec::new() };
    for _ in 0..ROUNDS {
        child.send(SUBMIT)?;
        when(&mut child)?;
        times.cancel.push(millis(|| {
            child.send(CANCEL)?;
            child.line_with(STOPPED)
        })?);
        times.word.push(millis(|| {
            minimal.send(&submit("hi"))?;
            minimal.line_with("\"done\":{")
        })?);
    }
    Ok(times)
}

fn millis(what: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    what()?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

fn stopped_pairs() -> io::Result<usize> {
    let args = ["rpc", "--engine", "echo", "--final-snapshot", "none"];
    let mut child = Child::greeted(Program::Duologue, &args)?;
    let mut requests = child.take_stdin()?;
    let pair = [SUBMIT, CANCEL].concat();
    let writing =
        thread::spawn(move || (0..PAIRS).try_for_each(|_| requests.write_all(pair.as_bytes())));
    let (mut stopped, mut ended) = (0, 0);
    while ended < 2 * PAIRS {
        let line = child.line()?;
        ended += usize::from(line.contains("\"done\":{"));
        stopped += usize::from(line.contains(STOPPED));
    }
    writing.join().map_err(|_| io::Error::other("the writing thread ended"))??;
    Ok(stopped)
}

const SUBMIT: &str = "{\"requestId\":\"s\",\"submit\":{\"prompt\":\"a b c d e f g h i j k l m n o p q r \
                      s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z\"}}\n";

const CANCEL: &str = "{\"requestId\":\"c\",\"cancel\":{}}\n";
