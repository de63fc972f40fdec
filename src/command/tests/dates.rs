//! Dates as people write them.

use super::{check, now};
use crate::command::date::rfc3339;
use jiff::tz::TimeZone;
use serde_json::json;

#[test]
fn forms() {
    let table = [
        ("2024-01-31", "2024-01-31T00:00:00Z"),
        ("2024-01-31T14:30:00Z", "2024-01-31T14:30:00Z"),
        ("2024-01-31T14:30:00.25+02:00", "2024-01-31T14:30:00.25+02:00"),
        ("2024-01-31 14:30:00", "2024-01-31T14:30:00Z"),
        ("2024-01-31 14:30", "2024-01-31T14:30:00Z"),
        ("2024/01/31", "2024-01-31T00:00:00Z"),
        ("2024/01/31 14:30", "2024-01-31T14:30:00Z"),
        ("01/31/2024", "2024-01-31T00:00:00Z"),
        ("20240131", "2024-01-31T00:00:00Z"),
        ("31 Jan 2024", "2024-01-31T00:00:00Z"),
        ("31 January 2024", "2024-01-31T00:00:00Z"),
        ("Jan 31, 2024", "2024-01-31T00:00:00Z"),
        ("January 31, 2024", "2024-01-31T00:00:00Z"),
        ("Jan 31, 2024 2:30 PM", "2024-01-31T14:30:00Z"),
        ("Wed, 31 Jan 2024 14:30:00 +0100", "2024-01-31T14:30:00+01:00"),
        ("1706711400", "2024-01-31T14:30:00Z"),
        ("1706711400000", "2024-01-31T14:30:00Z"),
        ("now", "2026-11-22T14:30:05Z"),
        ("today", "2026-11-22T00:00:00Z"),
        ("Yesterday", "2026-11-21T00:00:00Z"),
        ("tomorrow", "2026-11-23T00:00:00Z"),
        ("3 days ago", "2026-11-19T14:30:05Z"),
        ("two weeks ago", "2026-11-08T14:30:05Z"),
        ("in 1 hour", "2026-11-22T15:30:05Z"),
        ("5 minutes from now", "2026-11-22T14:35:05Z"),
        ("last month", "2026-10-22T14:30:05Z"),
        ("next year", "2027-11-22T14:30:05Z"),
    ];
    for (text, expected) in table {
        assert_eq!(rfc3339(text, &now()).as_deref(), Some(expected), "{text}");
    }
    let wrong =
        ["", "soon", "2024-02-30", "2024-13-01", "3 apples ago", "99999999999999999999 years ago"];
    for text in wrong {
        assert_eq!(rfc3339(text, &now()), None, "{text}");
    }
    assert_eq!(rfc3339(&"1".repeat(1 << 20), &now()), None);
}

#[test]
fn what_names_no_zone_is_here() {
    let here = now().with_time_zone(TimeZone::fixed(jiff::tz::offset(-5)));
    assert_eq!(rfc3339("2024-01-31", &here).as_deref(), Some("2024-01-31T00:00:00-05:00"));
    assert_eq!(rfc3339("today", &here).as_deref(), Some("2026-11-22T00:00:00-05:00"));
}

#[test]
fn as_flags() {
    check("type: date", &["--x", "2024-01-31"], Ok(json!("2024-01-31T00:00:00Z")));
    check(
        "type: date",
        &["--x", "soon"],
        Err("'soon' for '--x <DATE>': expected a date such as 2024-01-31"),
    );
    check("type: date\ndefault: today", &[], Ok(json!("2026-11-22T00:00:00Z")));
    check("type: date\ndefault: 2024-01-31", &[], Ok(json!("2024-01-31T00:00:00Z")));
    check(
        "type: date\ndefault: soon",
        &[],
        Err("cmd.yaml:5: flag `x`: the default `soon` is not a date"),
    );
}
