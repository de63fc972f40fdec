//! A proxy with SOCKS 5 (RFC 1928, RFC 1929) that connects whatever it is asked for to one server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

const VERSION: u8 = 5;

/// Methods of the login.
const NO_LOGIN: u8 = 0;
const PASSWORD: u8 = 2;
const NOT_ACCEPTED: u8 = 0xff;

/// Replies to a request for a connection.
const GRANTED: u8 = 0;
const NOT_ALLOWED: u8 = 2;

/// The proxy. Dropped, it closes every connection and ends its threads.
pub(crate) struct Socks {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The hosts and ports that were asked for.
    asked: Vec<String>,
    streams: Vec<TcpStream>,
    is_closing: bool,
}

/// What the proxy does.
#[derive(Clone, Copy)]
pub(crate) struct Conduct {
    /// Where every connection leads; `None` to refuse them.
    pub(crate) target: Option<SocketAddr>,
    /// The name and the password that it wants.
    pub(crate) login: Option<(&'static str, &'static str)>,
}

impl Socks {
    pub(crate) fn start(conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Mutex::new(Shared::default()));
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, conduct, &shared)
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The hosts and ports that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.shared).asked.clone()
    }
}

impl Drop for Socks {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.is_closing = true;
        for stream in &shared.streams {
            // It may be closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
        drop(shared);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, conduct: Conduct, shared: &Arc<Mutex<Shared>>) {
    let mut threads = Vec::new();
    for stream in listener.incoming().map_while(Result::ok) {
        if lock(shared).is_closing {
            break;
        }
        let shared = Arc::clone(shared);
        // The client may leave at any point.
        threads.push(thread::spawn(move || drop(serve(stream, conduct, &shared))));
    }
    for thread in threads {
        drop(thread.join());
    }
}

fn serve(mut client: TcpStream, conduct: Conduct, shared: &Mutex<Shared>) -> io::Result<()> {
    lock(shared).streams.push(client.try_clone()?);
    let [_, methods] = read(&mut client)?;
    let mut offered = vec![0; usize::from(methods)];
    client.read_exact(&mut offered)?;
    let wanted = if conduct.login.is_some() { PASSWORD } else { NO_LOGIN };
    if !offered.contains(&wanted) {
        return client.write_all(&[VERSION, NOT_ACCEPTED]);
    }
    client.write_all(&[VERSION, wanted])?;
    if let Some((name, password)) = conduct.login {
        let [_] = read(&mut client)?;
        let given = (text(&mut client)?, text(&mut client)?);
        let is_right = given == (name.to_owned(), password.to_owned());
        client.write_all(&[1, u8::from(!is_right)])?;
        if !is_right {
            return Ok(());
        }
    }
    let [_, _, _, kind] = read(&mut client)?;
    let host = match kind {
        1 => read::<4>(&mut client)?.map(|part| part.to_string()).join("."),
        3 => text(&mut client)?,
        _ => return Err(ErrorKind::InvalidData.into()),
    };
    let port = u16::from_be_bytes(read(&mut client)?);
    lock(shared).asked.push(format!("{host}:{port}"));
    let reply = if conduct.target.is_some() { GRANTED } else { NOT_ALLOWED };
    client.write_all(&[VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let Some(target) = conduct.target else { return Ok(()) };
    let server = TcpStream::connect(target)?;
    lock(shared).streams.push(server.try_clone()?);
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let forward = thread::spawn(move || copy(from_client, to_server));
    copy(server, client);
    drop(forward.join());
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // Either side may leave.
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Both).ok();
    from.shutdown(Shutdown::Both).ok();
}

fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A text with its length before it.
fn text(stream: &mut TcpStream) -> io::Result<String> {
    let [length] = read(stream)?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into())
}
