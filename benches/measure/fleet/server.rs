//! A server under measurement: a node, or the one that only echoes.

use crate::child::{Child, Program, pss_of};
use std::io;
use std::time::Duration;
use tonic::transport::Channel;

/// Of the counts of processor time in `/proc` (`sysconf(_SC_CLK_TCK)`, 100 on Linux).
const TICK_MILLIS: f64 = 10.0;

const CONNECT_MAX: Duration = Duration::from_secs(10);

pub(super) struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(super) url: String,
}

impl Server {
    pub(super) fn start(program: Program, args: &[&str]) -> io::Result<Self> {
        let mut child = Child::start(program, args)?;
        let line = child.line()?.trim_end().to_owned();
        let url = line.strip_prefix("listening on ").ok_or(io::ErrorKind::InvalidData)?.to_owned();
        Ok(Self { child, url })
    }

    /// A node on a free port, with these options.
    pub(super) fn node(args: &[&str]) -> io::Result<Self> {
        let own = ["serve", "--listen", "127.0.0.1:0", "--final-snapshot", "none"];
        Self::start(Program::Duologue, &[&own, args].concat())
    }

    pub(super) async fn channel(&self) -> io::Result<Channel> {
        let endpoint = Channel::from_shared(self.url.clone()).map_err(io::Error::other)?;
        let endpoint = endpoint.tcp_nodelay(true).connect_timeout(CONNECT_MAX);
        endpoint.connect().await.map_err(io::Error::other)
    }

    /// Memory, in kB.
    pub(super) fn kibibytes(&self) -> io::Result<f64> {
        Ok(pss_of(&self.child.id().to_string())? * 1024.0)
    }

    /// Processor time of all its threads, also of those that have ended, in milliseconds.
    pub(super) fn cpu_millis(&self) -> io::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in brackets, may hold anything (proc_pid_stat(5)).
        let (_, fields) = stat.rsplit_once(')').ok_or(io::ErrorKind::InvalidData)?;
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = times.filter_map(|it| it.parse::<f64>().ok()).sum();
        Ok(ticks * TICK_MILLIS)
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(self) {
        drop(self.child);
    }
}
