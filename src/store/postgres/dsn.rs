//! The address of a PostgreSQL database as it is typed: a URL, or libpq's `key=value` form (PostgreSQL's
//! manual, "Connection Strings"). Pure.

use super::address::Address;
use crate::store::file_url;
use crate::store::place::TypedPlace;
use crate::support::secret::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fmt;

/// What is written as `%XX` in a part of a URL.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'~').remove(b',');

/// Options that are passwords.
const PASSWORDS: [&str; 3] = ["password", "sslpassword", "oauth_client_secret"];

/// Names of libpq's options (PostgreSQL's manual, "Parameter Key Words"), also of those that are not supported, and
/// `ssl`, which it takes for `sslmode` in a URL.
const KEYS: [&str; 53] = [
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "options",
    "passfile",
    "password",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Beginnings of addresses in the form of a URL.
pub(super) const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Variables of libpq, and the options that they are the defaults of.
const VARIABLES: [(&str, &str); 11] = [
    ("PGHOST", "host"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGDATABASE", "dbname"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGOPTIONS", "options"),
];

/// The address of a database as it was typed, with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn(Secret);

/// Options by name.
pub(super) type Options = Vec<(String, String)>;

impl Dsn {
    /// An address in the form of a URL; `None` if it is something else.
    pub(in crate::store) fn url(text: &str) -> Option<Self> {
        let is_url = after_scheme(text).is_some();
        Secret::new(text).filter(|_| is_url).map(Self)
    }

    /// An address in either form; `None` if there is nothing.
    pub(in crate::store) fn new(text: &str) -> Option<Self> {
        Secret::new(text).map(Self)
    }

    /// The address as a URL without its password; `None` if it can't be read.
    pub(in crate::store) fn without_password(&self) -> Option<TypedPlace> {
        let mut options = self.options().ok()?;
        let before = options.len();
        options.retain(|(key, _)| !is_password(key));
        let had_password = options.len() < before;
        let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let user = take(&mut options, "user").map(|user| format!("{}@", encoded(&user)));
        let database = take(&mut options, "dbname").unwrap_or_default();
        let mut text = format!("{}{}/{}", SCHEMES[0], user.unwrap_or_default(), encoded(&database));
        for (number, (key, value)) in options.iter().enumerate() {
            text.push(if number == 0 { '?' } else { '&' });
            text.push_str(&format!("{}={}", encoded(key), encoded(value)));
        }
        Some(TypedPlace { text, had_password })
    }

    /// The options in either form.
    fn options(&self) -> Result<Options, String> {
        let text = self.0.expose();
        match (after_scheme(text), file_url::path(text)) {
            (Some(rest), _) => of_url(rest),
            // Only those that can't be used get here.
            (None, Some(file)) => Err(file.err().unwrap_or_else(malformed)),
            (None, None) => of_words(text),
        }
    }

    /// The address, with libpq's variables as `variable` gives them as defaults.
    ///
    /// # Errors
    /// If it can't be used, for a person. The error does not have the address in it.
    pub(in crate::store) fn address(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Address, String> {
        let mut options = self.options()?;
        for (name, key) in VARIABLES {
            if get(&options, key).is_none()
                && let Some(value) = variable(name).filter(|value| !value.is_empty())
            {
                options.push((key.to_owned(), value));
            }
        }
        Address::of(options)
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dsn([redacted])")
    }
}

/// Without the user and the password.
impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address(&|_| None) {
            Ok(address) => address.fmt(f),
            Err(_) => f.write_str("of PostgreSQL"),
        }
    }
}

pub(super) fn malformed() -> String {
    "it is no address of PostgreSQL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, \
     %2F for /, %3A for : and %3F for ? in a name or password"
        .to_owned()
}

/// The error of an option that can't be used.
pub(super) fn unsupported(key: &str) -> String {
    format!("the option `{key}` of a PostgreSQL address is not supported; leave it out")
}

/// The name of an option.
///
/// # Errors
/// If libpq has none of it. Where it `may_be_secret`, as a part of a password that was not encoded or quoted, it is not
/// shown.
fn known_key(name: &str, may_be_secret: bool) -> Result<String, String> {
    if let Some(known) = KEYS.iter().find(|known| **known == name) {
        return Ok((*known).to_owned());
    }
    // An address of another form may be taken for a name.
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    Err(if is_word && !may_be_secret {
        unsupported(name)
    } else {
        "it has an option that libpq does not know, which is not shown, as it may be a part of a password; \
         write %3F for ? and %26 for & in a URL, and put a value with spaces into single quotes"
            .to_owned()
    })
}

fn is_password(key: &str) -> bool {
    PASSWORDS.contains(&key)
}

/// For a person who has named a file.
const FILES: &str =
    "a file of SQLite is file:PATH here, and PATH with --turns-db and --timeline-db";

/// What follows the scheme of a URL, which may be written in capitals (RFC 3986, section 3.1); `None` if
/// it is another scheme, or none.
fn after_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| {
        let (begin, rest) = text.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// The options in a URL, without its scheme.
fn of_url(rest: &str) -> Result<Options, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let behind = if rest.contains('/') { database } else { query };
    // Nothing of a password may be taken for a name that is shown.
    if behind.contains('@') && may_end_in_password(authority, behind) {
        return Err(malformed());
    }
    // A user and a password behind one slash too many.
    if database.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
        return Err(malformed());
    }
    // In libpq the name of the user may contain a question mark, but no slash.
    let before_slash = query.split('/').next().unwrap_or_default();
    if !rest.contains(['/', '@']) && before_slash.contains('@') {
        return Err(malformed());
    }
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let mut options = Options::new();
    for (key, value) in [("user", user), ("password", password), ("dbname", database)] {
        if !value.is_empty() {
            options.push((key.to_owned(), decoded(value)?));
        }
    }
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        let (name, port) = match host.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(decoded(name)?);
        ports.push(port);
    }
    if !names.is_empty() {
        options.push(("host".to_owned(), names.join(",")));
    }
    if ports.iter().any(|port| !port.is_empty()) {
        options.push(("port".to_owned(), ports.join(",")));
    }
    // A password may have a question mark in it, where its colon has come before and the end of the user has not, or
    // where that comes behind.
    let mut may_be_secret = user.is_empty() && authority.contains(':') || query.contains('@');
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
        // A later one counts, as in libpq.
        let key = known_key(&decoded(name)?, may_be_secret)?;
        may_be_secret |= is_password(&key);
        take(&mut options, &key);
        options.push((key, decoded(value)?));
    }
    Ok(options)
}

/// Whether `authority` may end in the beginning of a password with a `/` or a `?`, whose end is then before an `@` of
/// `behind`.
fn may_end_in_password(authority: &str, behind: &str) -> bool {
    let Some((user, hosts)) = authority.rsplit_once('@') else { return authority.contains(':') };
    // Or the name of the user has an `@`, and its password begins where a port would be.
    let port = hosts.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    let has_database = behind.rsplit_once('@').is_some_and(|(_, host)| host.contains('/'));
    user.contains(':') || !is_port || !port.is_empty() && has_database
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| malformed())?;
    Ok(decoded.into_owned())
}

/// The options in libpq's form: `key = value`, where a value may stand in single quotes, and a
/// backslash makes the next character an ordinary one.
fn of_words(text: &str) -> Result<Options, String> {
    let mut options = Options::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let no_option = || format!("{}; {FILES}", malformed());
        let (name, after) = rest.split_once('=').ok_or_else(no_option)?;
        // The rest of an unquoted password that contains a space.
        let may_be_secret = options.iter().any(|(key, _)| is_password(key));
        let key = known_key(name.trim(), may_be_secret)?;
        let after = after.trim_start();
        let (quote, mut chars) = match after.strip_prefix('\'') {
            Some(quoted) => (true, quoted.chars()),
            None => (false, after.chars()),
        };
        let mut value = String::new();
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('\'') if quote => break,
                Some(c) if c.is_whitespace() && !quote => break,
                Some(c) => value.push(c),
                None if quote => return Err(malformed()),
                None => break,
            }
        }
        take(&mut options, &key);
        options.push((key, value));
        rest = chars.as_str().trim_start();
    }
    Ok(options)
}

/// The options in the form that the connection library reads.
pub(super) fn words(options: &[(String, String)]) -> String {
    let word = |(key, value): &(String, String)| {
        format!("{key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
    };
    options.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub(super) fn get<'a>(options: &'a [(String, String)], key: &str) -> Option<&'a str> {
    options.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

pub(super) fn take(options: &mut Options, key: &str) -> Option<String> {
    let at = options.iter().position(|(name, _)| name == key)?;
    Some(options.remove(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_taken_for_a_name_that_is_shown() {
        for text in [
            "postgres://ada:7/kTzS3cret@127.0.0.1:54991/chat",
            "postgres://ada:12?S3cret=rd@h/chat",
            "postgres://ada:12?S3cret@h/chat",
            "postgres://ada:12/x?S3cret=rd@h/chat",
            "postgres://ada:12?S3cret=1",
            "postgres://ada:pa@s/s?S3cret=1@h/chat",
            "postgres://ada:12?a/S3cret=rd@h/chat",
            "postgres://ada@site:7/kTzS3cret@h/chat",
            "postgres://ada@site:S3cret/x@h",
            "postgres://ada@site:12?user=S3cret@h/chat",
            "postgres:///ada:S3cret@127.0.0.1:1/chat",
            "postgres://CORP/ada:S3cret@127.0.0.1:1/chat",
            "postgres://ada@site/x:S3cret@h/chat",
            "postgres://ada@h/chat?password=two&s3cret=1",
            "postgers://ada:s3cret@h/chat?sslmode=require",
            "host=h password=two S3cret dbname=x",
            "host=h password=two s3cret=1",
        ] {
            let dsn = Dsn::new(text).expect("a text");
            let why = dsn.address(&|_| None).expect_err(text);
            let shown = format!("{why} {dsn} {dsn:?} {:?}", dsn.without_password());
            assert!(!shown.to_lowercase().contains("s3cret"), "{shown}");
        }
        // An option that is not supported is named elsewhere.
        for (text, key) in [
            ("postgres://h/chat?sslcrl=/c", "`sslcrl`"),
            ("host=h sslcrl = /c", "`sslcrl`"),
            ("host=h schema=public", "`schema`"),
            ("postgres://ada@h/c?schema=public", "`schema`"),
            ("postgres://ada:12@h/c?sslmode=require&schema=public", "`schema`"),
            ("postgres://ada@h/c?ssl=true", "`ssl`"),
            ("postgres://h/c?ssl=true", "`ssl`"),
            ("postgres://127.0.0.1/c?schema=public", "`schema`"),
        ] {
            let why = Dsn::new(text).expect("a text").address(&|_| None).expect_err(text);
            assert!(why.contains(key), "{why}");
        }
        // As in libpq, what follows the name of the database has no user.
        for (text, user, database) in [
            ("postgres://h/chat?user=ada@site", "ada@site", "chat"),
            ("postgresql://?host=/tmp/nope&user=ada@site&dbname=x", "ada@site", "x"),
            ("postgres://ada@127.0.0.1:1/my@db", "ada", "my@db"),
            ("postgres://ada@h/my@db", "ada", "my@db"),
            ("postgres://ada@h?dbname=my@db", "ada", "my@db"),
        ] {
            let address = Dsn::new(text).expect("a text").address(&|_| None).expect(text);
            let config = &address.config;
            assert_eq!((config.get_user(), config.get_dbname()), (Some(user), Some(database)));
        }
        // The user `h?user=ada` for libpq.
        let why = Dsn::new("postgresql://h?user=ada@site").expect("a text").address(&|_| None);
        assert_eq!(why.map(|_| ()), Err(malformed()));
    }
}
