//! The common name of a certificate, by which libpq knows a server whose certificate has no other names,
//! and which TLS libraries do not look at any more. Pure.

use rustls::pki_types::{CertificateDer, ServerName};

/// Tags of DER (ITU-T X.690, 8.1.2).
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Fields of a certificate before its subject, without the version (RFC 5280, 4.1): serial number,
/// signature, issuer, validity.
const FIELDS_BEFORE_SUBJECT: usize = 4;

/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// 2.5.29.17
const OTHER_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];

/// Whether the certificate has no other names, and its common name is that of the host. A certificate that
/// can't be read is for no host.
pub(super) fn is_named(certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> bool {
    let Some(Names { common, has_others: false }) = Names::read(certificate) else { return false };
    let typed = host.to_str();
    match common.strip_prefix("*.") {
        None => common.eq_ignore_ascii_case(&typed),
        // The star is one label, and never stands for all of a top-level domain.
        Some(domain) => {
            let of_host = typed.split_once('.').map(|(_, domain)| domain);
            matches!(host, ServerName::DnsName(_))
                && of_host.is_some_and(|it| it.contains('.') && it.eq_ignore_ascii_case(domain))
        }
    }
}

/// The names of whom a certificate is for.
#[derive(Debug, PartialEq, Eq)]
struct Names<'a> {
    common: &'a str,
    /// It has the extension with names, and then the common one does not count.
    has_others: bool,
}

impl<'a> Names<'a> {
    fn read(certificate: &'a CertificateDer<'_>) -> Option<Self> {
        let whole = value(certificate, SEQUENCE)?;
        let fields: Vec<_> = elements(value(whole, SEQUENCE)?).collect();
        let has_version = fields.first().is_some_and(|(tag, _)| *tag == VERSION);
        let (tag, subject) = fields.get(FIELDS_BEFORE_SUBJECT + usize::from(has_version))?;
        let common = elements(subject).filter_map(|(tag, set)| common_name(tag, set)).next();
        let common = common.filter(|name| *tag == SEQUENCE && !name.contains('\0'))?;
        let extensions = fields.iter().find(|(tag, _)| *tag == EXTENSIONS);
        let extensions = extensions.and_then(|(_, list)| value(list, SEQUENCE));
        let mut ids =
            elements(extensions.unwrap_or_default()).map(|(_, one)| value(one, OBJECT_ID));
        Some(Self { common, has_others: ids.any(|id| id == Some(&OTHER_NAMES)) })
    }
}

/// The common name in a part of a subject.
fn common_name(tag: u8, set: &[u8]) -> Option<&str> {
    let pair = value(set, SEQUENCE).filter(|_| tag == SET)?;
    let mut pair = elements(pair);
    let (_, id) = pair.next()?;
    let (_, name) = pair.next().filter(|_| id == COMMON_NAME)?;
    std::str::from_utf8(name).ok()
}

/// The value of the first element, if it has that tag.
fn value(input: &[u8], wanted: u8) -> Option<&[u8]> {
    elements(input).next().filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
}

/// The elements that follow each other in `input`, as tags and values, up to one that is cut off.
fn elements(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&tag, rest) = input.split_first()?;
        let (&length, rest) = rest.split_first()?;
        let (length, rest) = match length {
            0..=0x7f => (usize::from(length), rest),
            // The number of the bytes of the length.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        input = rest;
        Some((tag, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject;

    /// A certificate of the tests.
    fn certificate(pem: &[u8]) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem).expect("a certificate")
    }

    #[test]
    fn a_common_name_counts_where_there_is_no_other() {
        let own = certificate(include_bytes!("../../../tests/data/tls/self_signed.pem"));
        let starred = certificate(include_bytes!("../../../tests/data/tls/starred.pem"));
        let with_others = certificate(include_bytes!("../../../tests/data/tls/server.pem"));
        for (certificate, host, expected) in [
            (&own, "localhost", true),
            (&own, "LOCALHOST", true),
            (&own, "127.0.0.1", false),
            (&own, "db.example", false),
            (&starred, "one.db.example", true),
            (&starred, "db.example", false),
            (&starred, "a.one.db.example", false),
            (&with_others, "localhost", false),
        ] {
            let name = ServerName::try_from(host).expect("a name");
            assert_eq!(is_named(certificate, &name), expected, "{host}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_name() {
        let whole = certificate(include_bytes!("../../../tests/data/tls/self_signed.pem"));
        let name = ServerName::try_from("localhost").expect("a name");
        for end in 0..whole.len() {
            let cut = CertificateDer::from(&whole[..end]);
            assert!(!is_named(&cut, &name), "{end}");
        }
    }
}
