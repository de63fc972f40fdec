//! The password file of libpq (PostgreSQL's manual, "The Password File"): lines of
//! `host:port:database:user:password`, the first that fits counts.

use super::address::{Address, Server};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Adds the password of each server of an address, from the file that `PGPASSFILE` names, or from `~/.pgpass`.
pub(super) fn add_passwords(address: &mut Address, variable: &dyn Fn(&str) -> Option<String>) {
    let named = variable("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = || Some(Path::new(&variable("HOME")?).join(".pgpass"));
    let Some(text) = named.or_else(own).and_then(|path| read(&path)) else { return };
    for server in &mut address.servers {
        server.password = find(&text, &address.config, server);
    }
}

/// The text of the file, which others must not be able to read.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() {
        return None;
    }
    if about.permissions().mode() & 0o077 != 0 {
        tracing::warn!(
            path = %path.display(),
            "the password file is ignored, as other users can read it; change its mode to 0600"
        );
        return None;
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The password of the first line for the server.
fn find(text: &str, config: &Config, server: &Server) -> Option<String> {
    let port = server.port.to_string();
    let user = config.get_user().unwrap_or_default();
    // As in libpq, a database without a name is that of the user.
    let database = config.get_dbname().unwrap_or(user);
    let host = match (&server.host, server.ip) {
        (Some(Host::Tcp(host)), _) => host.clone(),
        (None, Some(ip)) => ip.to_string(),
        (Some(Host::Unix(_)), _) | (None, None) => "localhost".to_owned(),
    };
    let wanted = [host.as_str(), port.as_str(), database, user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [own @ .., password] = fields.as_slice() else { return None };
        let fits = |(own, wanted): (&String, &&str)| own == "*" || own == *wanted;
        let is_whole = own.len() == wanted.len();
        (is_whole && own.iter().zip(&wanted).all(fits)).then(|| password.clone())
    })
}

/// The fields of a line; `\:` and `\\` are characters.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|it| it.extend(chars.next())),
            c => fields.last_mut().into_iter().for_each(|it| it.push(c)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::dsn::Dsn;

    /// The password of each server of an address.
    fn all(text: &str, address: &Address) -> Vec<Option<String>> {
        address.servers.iter().map(|server| find(text, &address.config, server)).collect()
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text =
            "# a:comment\nother:5432:chat:ada:one\nh:*:chat:ada:t\\:w\\\\o:x\n*:*:*:*:three\nh\n";
        for (dsn, password) in [
            ("postgres://ada@h/chat", Some("t:w\\o:x")),
            ("postgres://ada@h:7/chat", Some("t:w\\o:x")),
            ("postgres://ada@h/other", Some("three")),
            ("postgres://bob@[::1]/chat", Some("three")),
        ] {
            let address = Dsn::new(dsn).expect("a text").address(&|_| None).expect("an address");
            assert_eq!(all(text, &address), [password.map(str::to_owned)], "{dsn}");
            assert_eq!(all("h:1:chat:ada", &address), [None]);
        }
    }

    #[test]
    fn without_a_user_the_line_is_that_of_the_user_of_the_system() {
        let text = "h:*:*:bob:one\nh:*:ada:ada:two\n192.0.2.1:*:*:ada:three\n";
        for (dsn, user, password) in [
            ("postgres://h", "ada", "two"),
            ("postgres://bob@h/chat", "bob", "one"),
            ("hostaddr=192.0.2.1 dbname=chat", "ada", "three"),
        ] {
            let address = Dsn::new(dsn).expect("a text").address(&|_| None).expect("an address");
            let address = address.with_user(|| Some("ada".to_owned()));
            assert_eq!(address.config.get_user(), Some(user), "{dsn}");
            assert_eq!(all(text, &address), [Some(password.to_owned())], "{dsn}");
        }
    }

    #[test]
    fn each_server_has_the_password_of_its_own_line() {
        let dsn = Dsn::new("postgres://ada@a:1,b:2,c:3/chat").expect("a text");
        let mut address = dsn.address(&|_| None).expect("an address");
        let found = all("b:2:*:ada:s3cret-b\n*:3:*:ada:s3cret-c\n", &address);
        assert_eq!(found, [None, Some("s3cret-b".to_owned()), Some("s3cret-c".to_owned())]);
        for (server, password) in address.servers.iter_mut().zip(found) {
            server.password = password;
        }
        let passwords = address.servers.iter().map(|server| {
            let config = server.config(&address.config, None);
            config.get_password().map(<[u8]>::to_vec)
        });
        let expected = [None, Some(b"s3cret-b".to_vec()), Some(b"s3cret-c".to_vec())];
        assert_eq!(passwords.collect::<Vec<_>>(), expected);
        assert_eq!(address.passwords().count(), 2, "no error has one of them");
        assert!(!format!("{address:?} {:?}", address.servers).contains("s3cret"));
    }
}
