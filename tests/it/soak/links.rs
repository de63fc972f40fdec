//! How requests of very many turns reach a process. Frames are read and forgotten.

use crate::server::{Launch, Reading, Server};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// A way to conversations, and the frames that come back.
pub(super) trait Link {
    /// Sends request lines to a conversation.
    fn send(&mut self, conversation: u64, lines: &str);

    /// The next frame.
    fn line(&mut self) -> String;

    /// Sends a request line while others are open; gives how many ends come for it among the frames.
    fn answer(&mut self, conversation: u64, line: &str) -> usize;

    /// Each request has its end.
    fn settle(&mut self);
}

/// Standard input and output.
pub(super) struct Piped {
    server: Server,
    frames: BufReader<File>,
}

impl Piped {
    pub(super) fn start(launch: Launch) -> Self {
        let server = launch.stdout(Reading::Held).start();
        let pipe = std::os::fd::AsFd::as_fd(server.held_stdout()).try_clone_to_owned();
        let frames = BufReader::new(File::from(pipe.expect("a descriptor")));
        Self { server, frames }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Closes standard input; the process ends by itself.
    pub(super) fn end(mut self) {
        self.server.close_stdin();
        assert!(self.server.exit_status().success());
    }
}

impl Link for Piped {
    fn send(&mut self, _: u64, lines: &str) {
        self.server.send_raw(lines.as_bytes());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.frames.read_line(&mut line).expect("UTF-8");
        assert!(read > 0, "the process has ended");
        line
    }

    fn answer(&mut self, conversation: u64, line: &str) -> usize {
        self.send(conversation, line);
        1
    }

    fn settle(&mut self) {}
}

#[cfg(feature = "serve")]
pub(super) use posted::Posted;

#[cfg(feature = "serve")]
mod posted {
    use super::Link;
    use std::collections::VecDeque;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;

    /// Plain HTTP to a node: one connection for what is asked, and one for what comes meanwhile.
    pub(in super::super) struct Posted {
        asked: Connection,
        beside: Connection,
    }

    /// A connection that is used again for each request.
    struct Connection {
        stream: BufReader<TcpStream>,
        /// What was read and is no whole line yet.
        rest: Vec<u8>,
        lines: VecDeque<String>,
    }

    impl Posted {
        /// Connects to the node at `address`.
        pub(in super::super) fn new(address: &str) -> Self {
            Self { asked: Connection::new(address), beside: Connection::new(address) }
        }
    }

    impl Link for Posted {
        fn send(&mut self, conversation: u64, lines: &str) {
            self.asked.post(conversation, lines);
        }

        fn line(&mut self) -> String {
            self.asked.line().expect("a frame")
        }

        fn answer(&mut self, conversation: u64, line: &str) -> usize {
            self.beside.post(conversation, line);
            while self.beside.line().is_some() {}
            0
        }

        fn settle(&mut self) {
            assert_eq!(self.asked.line(), None);
        }
    }

    impl Connection {
        fn new(address: &str) -> Self {
            let stream = TcpStream::connect(address).expect("the node listens");
            stream.set_nodelay(true).expect("a socket");
            Self { stream: BufReader::new(stream), rest: Vec::new(), lines: VecDeque::new() }
        }

        fn post(&mut self, conversation: u64, lines: &str) {
            let request = format!(
                "POST /v1/sessions/s{conversation}/requests?extensions=client-tools,compaction HTTP/1.1\r\n\
                 host: localhost\r\ncontent-length: {}\r\n\r\n{lines}",
                lines.len()
            );
            self.stream.get_mut().write_all(request.as_bytes()).expect("the node reads");
            let status = self.header();
            assert!(status.starts_with("HTTP/1.1 200"), "{status}");
            let mut is_chunked = false;
            loop {
                let header = self.header().to_ascii_lowercase();
                is_chunked |= header == "transfer-encoding: chunked";
                if header.is_empty() {
                    break;
                }
            }
            assert!(is_chunked);
        }

        fn header(&mut self) -> String {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a line");
            line.trim_end().to_owned()
        }

        /// The next line of the body (RFC 9112, section 7.1); `None` at its end.
        fn line(&mut self) -> Option<String> {
            while self.lines.is_empty() {
                let size = usize::from_str_radix(&self.header(), 16).expect("a size");
                let before = self.rest.len();
                self.rest.resize(before + size, 0);
                self.stream.read_exact(&mut self.rest[before..]).expect("a chunk");
                assert_eq!(self.header(), "");
                if size == 0 {
                    return None;
                }
                while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                    let line: Vec<u8> = self.rest.drain(..=end).collect();
                    self.lines.push_back(String::from_utf8(line).expect("UTF-8"));
                }
            }
            self.lines.pop_front()
        }
    }
}
