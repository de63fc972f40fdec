//! Checks the first frame: its protocol, its server, and the capabilities that the contract fixes.

use super::names::shown;
use super::rule::{Report, Rule};
use crate::protocol::proto::rpc::HelloFrame;
use crate::protocol::wire;
use crate::protocol::words::capability::{ALWAYS, OF_STDIN, REQUEST_BYTES};

pub(super) fn check_hello(hello: &HelloFrame, report: &mut Report) {
    if hello.protocol != wire::PROTOCOL {
        let (protocol, known) = (shown(&hello.protocol), wire::PROTOCOL);
        report.add(Rule::HelloProtocol, format!("the protocol is {protocol:?}, not {known}"));
    }
    if hello.server.is_empty() {
        report.add(Rule::HelloServer, "hello does not name the server");
    }
    let has = |word: &&str| hello.capabilities.iter().any(|known| known == word);
    let mut missing: Vec<_> = ALWAYS.iter().filter(|word| !has(word)).copied().collect();
    if OF_STDIN.iter().any(&has) {
        missing.extend(OF_STDIN.iter().filter(|word| !has(word)));
    }
    if !missing.is_empty() {
        let message = format!("hello lacks the capabilities {}", missing.join(", "));
        report.add(Rule::HelloCapabilities, message);
    }
    for word in &hello.capabilities {
        let bytes = word.strip_prefix(REQUEST_BYTES);
        if word.is_empty() || bytes.is_some_and(|bytes| bytes.parse::<u64>().is_err()) {
            let message = format!("{:?} is not a valid capability", shown(word));
            report.add(Rule::HelloCapabilities, message);
        }
    }
}
