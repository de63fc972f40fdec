//! A PostgreSQL database, and how it is connected to. The names and meanings of options are libpq's. Pure.

use super::dsn::{Options, SCHEMES, get, malformed, take, unsupported, words};
use crate::support::secret::Secret;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// Where the server of this machine listens if no host is named: the folder of Debian's packages.
const SOCKET_FOLDER: &str = "/var/run/postgresql";

/// The connection library reads these options itself.
const PASSED_ON: [&str; 14] = [
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "target_session_attrs",
    "load_balance_hosts",
];

/// Options that say where the servers are.
const OF_SERVERS: [&str; 3] = ["host", "hostaddr", "port"];

/// The port of a server for which none is named.
const PORT: u16 = 5432;

/// How long a connection may be silent before the system asks whether the server is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// How long the server may leave what it was sent without an acknowledgement.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// A database, and how it is connected to.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::store) struct Address {
    /// What all of its servers are told; it names none of them.
    pub(super) config: Config,
    /// Where it may be, in their order.
    pub(super) servers: Vec<Server>,
    pub(super) tls: Tls,
    pub(super) identity: Option<Identity>,
    /// The address says which servers may be used, those that can be written to or others.
    names_target: bool,
}

/// A place where a database may be.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Its name; `None` if only its number is known.
    pub(super) host: Option<Host>,
    pub(super) ip: Option<IpAddr>,
    pub(super) port: u16,
    /// The password that the password file has for the server.
    pub(super) password: Option<String>,
}

/// The files of the certificate and the key by which a server knows this client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) certificates: PathBuf,
    pub(super) key: PathBuf,
}

/// How the connection is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    /// It is not.
    Off,
    /// Encrypted if the server can, and with whichever certificate it has.
    Preferred,
    /// Encrypted, with whichever certificate the server has.
    Unverified,
    /// Encrypted, and the certificate is of one of these authorities.
    Authority(Authorities),
    /// Also, the certificate is that of the host.
    Host(Authorities),
}

/// Who may sign a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Authorities {
    /// Those built in, and those of `SSL_CERT_FILE`.
    Builtin,
    /// The system's.
    System,
    /// The certificates of a file.
    File(PathBuf),
}

impl Address {
    /// Of these options.
    ///
    /// # Errors
    /// If it can't be used, for a person. The error has no value in it.
    pub(super) fn of(mut options: Options) -> Result<Self, String> {
        let mode = take(&mut options, "sslmode");
        let root = take(&mut options, "sslrootcert");
        let unacknowledged = take(&mut options, "tcp_user_timeout");
        let identity = identity(&mut options)?;
        check_binding(take(&mut options, "channel_binding").as_deref())?;
        if let Some((key, _)) = options.iter().find(|(key, _)| !PASSED_ON.contains(&key.as_str())) {
            return Err(unsupported(key));
        }
        if get(&options, "host").is_none() && get(&options, "hostaddr").is_none() {
            options.push(("host".to_owned(), SOCKET_FOLDER.to_owned()));
        }
        let servers = servers(&options)?;
        options.retain(|(key, _)| !OF_SERVERS.contains(&key.as_str()));
        let mut config: Config = words(&options).parse().map_err(|_| malformed())?;
        let tls = Tls::of(mode.as_deref(), root, servers.iter().all(Server::is_local))?;
        config.ssl_mode(match tls {
            Tls::Off => SslMode::Disable,
            Tls::Preferred => SslMode::Prefer,
            Tls::Unverified | Tls::Authority(_) | Tls::Host(_) => SslMode::Require,
        });
        // libpq counts in milliseconds.
        let unacknowledged = match unacknowledged.map(|it| it.parse().map(Duration::from_millis)) {
            Some(Err(_)) => return Err(malformed()),
            Some(Ok(given)) => given,
            None => UNACKNOWLEDGED_MAX,
        };
        config.tcp_user_timeout(unacknowledged);
        if get(&options, "keepalives_idle").is_none() {
            config.keepalives_idle(KEEPALIVE_IDLE);
        }
        if get(&options, "application_name").is_none() {
            config.application_name("duologue");
        }
        let names_target = get(&options, "target_session_attrs").is_some();
        if !names_target && servers.len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self { config, servers, tls, identity, names_target })
    }

    /// With the user that `own` gives if none is named.
    pub(super) fn with_user(mut self, own: impl FnOnce() -> Option<String>) -> Self {
        if self.config.get_user().is_none()
            && let Some(user) = own()
        {
            self.config.user(user);
        }
        self
    }

    /// How a server is connected to at each of the numbers of its name: one of them may be a standby.
    pub(super) fn ways(
        &self,
        server: &Server,
        numbers: impl IntoIterator<Item = IpAddr>,
    ) -> Vec<Config> {
        let numbers = numbers.into_iter();
        let mut ways: Vec<_> = numbers.map(|ip| server.config(&self.config, Some(ip))).collect();
        if ways.len() > 1 && !self.names_target && !server.is_local() {
            for way in &mut ways {
                way.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
        }
        ways
    }

    /// The passwords, which no text may contain.
    pub(super) fn passwords(&self) -> impl Iterator<Item = Secret> {
        let common = self.config.get_password().map(|it| String::from_utf8_lossy(it).into_owned());
        let own = self.servers.iter().filter_map(|server| server.password.clone());
        common.into_iter().chain(own).filter_map(|password| Secret::new(&password))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Without the user and the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEMES[0])?;
        for (number, server) in self.servers.iter().enumerate() {
            f.write_str(if number > 0 { "," } else { "" })?;
            server.fmt(f)?;
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl Server {
    /// How this one is connected to, at `ip` if it has a number.
    pub(super) fn config(&self, common: &Config, ip: Option<IpAddr>) -> Config {
        let mut config = common.clone();
        match (&self.host, ip) {
            (Some(Host::Tcp(name)), _) => config.host(name),
            // As in libpq: nobody else can read what goes over a socket.
            (Some(Host::Unix(path)), _) => config.host_path(path).ssl_mode(SslMode::Disable),
            // The certificate is then checked for the number.
            (None, Some(ip)) => config.host(ip.to_string()),
            (None, None) => &mut config,
        };
        if let Some(ip) = ip {
            config.hostaddr(ip);
        }
        if let Some(password) = &self.password {
            config.password(password);
        }
        config.port(self.port);
        config
    }

    /// Whether it is this machine.
    fn is_local(&self) -> bool {
        let is_name_local = match &self.host {
            Some(Host::Tcp(name)) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            Some(Host::Unix(_)) | None => true,
        };
        is_name_local && self.ip.is_none_or(|ip| ip.is_loopback())
    }
}

/// Without the password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.ip) {
            (Some(Host::Tcp(host)), _) if host.contains(':') => write!(f, "[{host}]")?,
            (Some(Host::Tcp(host)), _) => f.write_str(host)?,
            (Some(Host::Unix(path)), _) => write!(f, "{}", path.display())?,
            (None, Some(IpAddr::V6(ip))) => write!(f, "[{ip}]")?,
            (None, Some(IpAddr::V4(ip))) => write!(f, "{ip}")?,
            (None, None) => {}
        }
        if self.port == PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Tls {
    /// `root` names a file of certificates, or `system`.
    fn of(mode: Option<&str>, root: Option<String>, is_local: bool) -> Result<Self, String> {
        let authorities = match root.as_deref() {
            None | Some("") => Authorities::Builtin,
            Some("system") => Authorities::System,
            Some(path) => Authorities::File(PathBuf::from(path)),
        };
        Ok(match mode {
            Some("disable") => Self::Off,
            // As in libpq, an authority that is named is one that is checked.
            Some("require") if authorities == Authorities::Builtin => Self::Unverified,
            Some("require" | "verify-ca") => Self::Authority(authorities),
            Some("verify-full") => Self::Host(authorities),
            Some("allow" | "prefer") => Self::Preferred,
            // What never leaves the machine needs no certificate.
            None if is_local => Self::Preferred,
            None => Self::Host(authorities),
            Some(_) => {
                return Err(
                    "sslmode must be disable, allow, prefer, require, verify-ca or verify-full"
                        .to_owned(),
                );
            }
        })
    }
}

/// The certificate and the key of this client; `None` if the options name none.
fn identity(options: &mut Options) -> Result<Option<Identity>, String> {
    let mut path = |name| take(options, name).filter(|path| !path.is_empty()).map(PathBuf::from);
    match (path("sslcert"), path("sslkey")) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Identity { certificates, key })),
        (Some(_), None) | (None, Some(_)) => {
            Err("sslcert and sslkey belong together; name the files of both".to_owned())
        }
    }
}

/// The password is never bound to the connection: a server that is verified needs no such proof.
fn check_binding(wanted: Option<&str>) -> Result<(), String> {
    match wanted {
        None | Some("" | "disable" | "prefer") => Ok(()),
        Some("require") => {
            Err("channel_binding=require is not supported; leave channel_binding out, \
             and use sslmode=verify-full, which checks the server's certificate and name"
                .to_owned())
        }
        Some(_) => Err("channel_binding must be disable, prefer or require".to_owned()),
    }
}

/// The servers that options name. There is a number for each name, if there are both, and one port for all of them
/// or one for each.
fn servers(options: &Options) -> Result<Vec<Server>, String> {
    let named = options.iter().filter(|(key, _)| OF_SERVERS.contains(&key.as_str())).cloned();
    let named: Config = words(&named.collect::<Options>()).parse().map_err(|_| malformed())?;
    let (hosts, ips, ports) = (named.get_hosts(), named.get_hostaddrs(), named.get_ports());
    let count = hosts.len().max(ips.len());
    let is_matched = |of: usize| of == 0 || of == count;
    if !is_matched(hosts.len()) || !is_matched(ips.len()) {
        return Err("host and hostaddr must name the same servers, one for one".to_owned());
    }
    if ports.len() != 1 && !is_matched(ports.len()) {
        return Err("port must have one number for all servers, or one for each".to_owned());
    }
    let server = |at: usize| Server {
        host: hosts.get(at).cloned(),
        ip: ips.get(at).copied(),
        port: ports.get(at).or(ports.first()).copied().unwrap_or(PORT),
        password: None,
    };
    Ok((0..count).map(server).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::dsn::Dsn;

    fn address(text: &str) -> Result<Address, String> {
        Dsn::new(text).expect("an address").address(&|_| None)
    }

    #[track_caller]
    fn parsed(text: &str) -> Address {
        address(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn both_forms_name_the_same_database() {
        let url = parsed("postgres://ada:p%40ss%2F@db.example:6000/chat?sslmode=verify-full");
        let words = parsed(
            r"host=db.example port = 6000 user=ada password='p@ss/' dbname=chat sslmode=verify-full",
        );
        assert_eq!(url, words);
        assert_eq!(url.config.get_password(), Some(b"p@ss/".as_slice()));
        assert_eq!(url.to_string(), "postgres://db.example:6000/chat");
        assert_eq!(
            parsed(r"host=a password='it\'s \\'").config.get_password(),
            Some(&br"it's \"[..])
        );
        assert_eq!(parsed("postgresql://[::1]:7/x").to_string(), "postgres://[::1]:7/x");
        assert_eq!(parsed("postgres:///x").to_string(), "postgres:///var/run/postgresql/x");
        let two = parsed("postgres://a:1,b:2/x");
        assert_eq!(two.to_string(), "postgres://a:1,b:2/x");
        assert_eq!(two.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn each_server_has_a_name_or_a_number_and_a_port() {
        let ports = |text| parsed(text).servers.iter().map(|it| it.port).collect::<Vec<_>>();
        assert_eq!(ports("postgres://a,b,c/x"), [PORT; 3]);
        assert_eq!(ports("postgres://a,b/x?port=7"), [7, 7]);
        assert_eq!(ports("postgres://a:1,b/x?port=1,2"), [1, 2]);
        assert_eq!(parsed("hostaddr=192.0.2.1 dbname=x").to_string(), "postgres://192.0.2.1/x");
        for text in ["host=a,b hostaddr=192.0.2.1", "host=a,b,c port=1,2"] {
            assert!(address(text).is_err(), "{text}");
        }
        let second = parsed("host=a,b hostaddr=192.0.2.1,192.0.2.2 port=7 user=ada");
        let config = second.servers[1].config(&second.config, second.servers[1].ip);
        assert_eq!(config.get_hosts(), [Host::Tcp("b".to_owned())]);
        assert_eq!((config.get_ports(), config.get_user()), (&[7][..], Some("ada")));
        for text in ["192.0.2.1", "2001:db8::1"] {
            let unnamed = parsed(&format!("hostaddr={text} dbname=x"));
            let config = unnamed.servers[0].config(&unnamed.config, unnamed.servers[0].ip);
            assert_eq!(config.get_hosts(), [Host::Tcp(text.to_owned())], "TLS needs a name");
        }
    }

    #[test]
    fn a_name_with_several_numbers_leads_to_the_one_that_can_be_written_to() {
        let (first, second) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let targets = |text, numbers: &[IpAddr]| -> Vec<_> {
            let address = parsed(text);
            let ways = address.ways(&address.servers[0], numbers.iter().copied());
            ways.iter().map(Config::get_target_session_attrs).collect()
        };
        let (any, writable) = (TargetSessionAttrs::Any, TargetSessionAttrs::ReadWrite);
        let both = [first, second];
        assert_eq!(targets("postgres://db/x", &both), [writable; 2]);
        assert_eq!(targets("postgres://db/x", &[first]), [any]);
        assert_eq!(targets("postgres://localhost/x", &both), [any; 2], "it is one server");
        assert_eq!(targets("postgres://db/x?target_session_attrs=any", &both), [any; 2]);
        let reading = "postgres://db/x?target_session_attrs=read-only";
        assert_eq!(targets(reading, &both), [TargetSessionAttrs::ReadOnly; 2]);
        assert_eq!(targets("postgres://db,other/x", &[first]), [writable]);
    }

    #[test]
    fn nothing_is_encrypted_on_a_socket() {
        let both = parsed("host=/run/db,db sslmode=verify-full");
        let modes = both.servers.iter().map(|it| it.config(&both.config, it.ip).get_ssl_mode());
        assert_eq!(modes.collect::<Vec<_>>(), [SslMode::Disable, SslMode::Require]);
    }

    /// The image that compose starts has no certificate, and a database that Kubernetes is given needs one.
    #[test]
    fn the_nodes_of_the_examples_reach_their_databases() {
        let compose = include_str!("../../../examples/fleet/compose.yaml");
        let variable = |name: &str| {
            let mut lines = compose.lines().map(str::trim);
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
        };
        let store = Dsn::new(&variable("DUOLOGUE_STORE").expect("a store")).expect("an address");
        let address = store.address(&variable).expect("a database");
        assert_eq!(address.to_string(), "postgres://postgres/duologue");
        assert_eq!(address.tls, Tls::Off);
        let kubernetes = include_str!("../../../examples/fleet/kubernetes.yaml");
        let mut lines = kubernetes.lines().map(str::trim);
        let store = lines.find_map(|line| line.strip_prefix("- --store=")).expect("a store");
        assert_eq!(parsed(store).tls, Tls::Host(Authorities::Builtin));
    }

    #[test]
    fn a_server_elsewhere_is_verified_unless_the_address_says_otherwise() {
        let (builtin, system) = (Authorities::Builtin, Authorities::System);
        let file = Authorities::File(PathBuf::from("/r.pem"));
        for (text, tls, mode) in [
            ("postgres://h/x", Tls::Host(builtin.clone()), SslMode::Require),
            ("postgres://127.0.0.1/x", Tls::Preferred, SslMode::Prefer),
            ("postgres://localhost/x", Tls::Preferred, SslMode::Prefer),
            ("postgres:///x", Tls::Preferred, SslMode::Prefer),
            ("postgres://localhost,h/x", Tls::Host(builtin.clone()), SslMode::Require),
            ("host=localhost hostaddr=192.0.2.1", Tls::Host(builtin.clone()), SslMode::Require),
            ("postgres://h/x?sslmode=disable", Tls::Off, SslMode::Disable),
            ("postgres://h/x?sslmode=prefer", Tls::Preferred, SslMode::Prefer),
            ("postgres://h/x?sslmode=require", Tls::Unverified, SslMode::Require),
            (
                "postgres://h/x?sslmode=require&sslrootcert=/r.pem",
                Tls::Authority(file.clone()),
                SslMode::Require,
            ),
            ("postgres://h/x?sslmode=verify-ca", Tls::Authority(builtin), SslMode::Require),
            ("postgres://h/x?sslrootcert=system", Tls::Host(system), SslMode::Require),
            ("host=h sslmode=verify-full sslrootcert=/r.pem", Tls::Host(file), SslMode::Require),
        ] {
            let address = parsed(text);
            assert_eq!((address.tls, address.config.get_ssl_mode()), (tls, mode), "{text}");
        }
    }

    #[test]
    fn what_can_not_be_used_is_an_error_without_the_password() {
        for text in [
            "postgres://u:s3cret@h:port/x",
            "postgres://u:s3cret@h/x?sslmode=maybe",
            "postgres://u:s3cret@h/x?sslkey=/k",
            "postgres://u:s3cret@h/x?sslcert=/c",
            "postgres://u:s3cret@h/x?channel_binding=require",
            "postgres://u:s3cret@h/x?channel_binding=maybe",
            "postgres://u:s3cret@h/x?sslpassword=s3cret&sslcert=/c&sslkey=/k",
            "postgres://u:s3cret@h/x?sslmode",
            "postgres://u:s3cret%ff@h/x",
            "host=h password='s3cret",
            "host=h s3cret",
            "host=h tcp_user_timeout=s3cret",
        ] {
            let why = address(text).expect_err(text);
            assert!(!why.contains("s3cret"), "{why}");
            let dsn = Dsn::new(text).expect("an address");
            assert!(!format!("{dsn} {dsn:?}").contains("s3cret"), "{dsn}");
        }
        assert!(Dsn::url("chat=1.db").is_none() && Dsn::new(" ").is_none());
        assert!(address("chat.db").is_err());
    }

    #[test]
    fn a_client_may_have_a_certificate() {
        let named = parsed("postgres://h/x?sslcert=/c.pem&sslkey=/k.pem&channel_binding=prefer");
        let (certificates, key) = (PathBuf::from("/c.pem"), PathBuf::from("/k.pem"));
        assert_eq!(named.identity, Some(Identity { certificates, key }));
        assert_eq!(parsed("postgres://h/x").identity, None);
    }

    #[test]
    fn variables_are_defaults() {
        let dsn = Dsn::new("postgres://h/x?connect_timeout=3").expect("an address");
        let variable = |name: &str| match name {
            "PGPASSWORD" => Some("pw".to_owned()),
            "PGUSER" => Some("ada".to_owned()),
            "PGDATABASE" => Some("other".to_owned()),
            "PGSSLMODE" => Some("disable".to_owned()),
            _ => None,
        };
        let address = dsn.address(&variable).expect("an address");
        let config = &address.config;
        let found = (config.get_user(), config.get_password(), config.get_dbname());
        assert_eq!(found, (Some("ada"), Some(&b"pw"[..]), Some("x")));
        assert_eq!(address.tls, Tls::Off);
        assert!(!format!("{address:?}").contains("pw"));
    }
}
