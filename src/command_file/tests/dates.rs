//! Dates as people write them.

use super::{check, now, run_at};
use crate::command_file::date::{is_date, rfc3339};
use jiff::{Zoned, civil, tz::TimeZone};
use serde_json::json;

/// Dates and what glazed's libraries read them as.
const RECORDED: &str = include_str!("dates.txt");

/// There are at least this many.
const RECORDED_MIN: usize = 200;

/// Berlin's time, without the machine's list of zones.
fn in_berlin() -> Zoned {
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
    civil::date(2026, 11, 22).at(14, 30, 5, 0).to_zoned(zone).expect("a date")
}

#[test]
fn dates_are_read_as_pinocchio_reads_them() {
    let lines = RECORDED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<_> = lines.collect();
    let now = in_berlin();
    let wrong = lines.iter().filter_map(|line| {
        let (text, expected) = line.split_once(" = ").expect("a date and what it is");
        let found = rfc3339(text, &now);
        assert!(is_date(text), "a flag takes {text}");
        // Go writes `Z` for every zone with UTC's time.
        let found = found.map(|found| found.replace("+00:00", "Z"));
        (found.as_deref() != Some(expected)).then(|| format!("{text}: {found:?}, not {expected}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines.len() >= RECORDED_MIN, "only {}", lines.len());
}

/// Pinocchio's libraries make something else of these: now, another day, or noon of midnight.
#[test]
fn dates_that_pinocchio_reads_wrong() {
    let table = [
        ("2024-01-31T14:30:00.25Z", "2024-01-31T14:30:00.25Z"),
        ("1 March 2024 10:00", "2024-03-01T10:00:00+01:00"),
        ("Jan 31, 2024 12:30 AM", "2024-01-31T00:30:00+01:00"),
        ("1st March 2024", "2024-03-01T00:00:00+01:00"),
        ("dec 7, '70", "1970-12-07T00:00:00+01:00"),
        ("Wed, 31 Jan 2024 14:30:00 EST", "2024-01-31T14:30:00-05:00"),
        ("Friday, March 1, 2024", "2024-03-01T00:00:00+01:00"),
        ("a day ago", "2026-11-21T00:00:00+01:00"),
        ("an hour ago", "2026-11-22T13:30:05+01:00"),
        ("30 seconds ago", "2026-11-22T14:29:35+01:00"),
        ("yesterday at noon", "2026-11-21T12:00:00+01:00"),
        ("midnight", "2026-11-22T00:00:00+01:00"),
        ("12am", "2026-11-22T00:00:00+01:00"),
        ("10:00pm", "2026-11-22T22:00:00+01:00"),
        ("5pm tomorrow", "2026-11-23T17:00:00+01:00"),
    ];
    for (text, expected) in table {
        assert_eq!(rfc3339(text, &in_berlin()).as_deref(), Some(expected), "{text}");
    }
    let wrong = [
        "",
        "soon",
        "foo",
        "tonight",
        "hello monday",
        "the day after tomorrow",
        "2024-02-30",
        "2024-13-01",
        "13/04/2024",
        "31.01.2024",
        "20241301",
        "202403",
        "3 apples ago",
        "5",
        "at",
        "24:00",
        "25:00",
        "13pm",
        "10:00 11:00",
        "March 2024",
        "31st of next month at",
        "-5",
        "99999999999999999999 years ago",
        "9999999999999999 days ago",
        "in 99999 years",
    ];
    for text in wrong {
        assert_eq!(rfc3339(text, &in_berlin()), None, "{text}");
    }
    assert_eq!(rfc3339(&"1".repeat(1 << 20), &now()), None);
}

/// The day that stands for "for ever", which is later than jiff's own times.
#[test]
fn the_last_day_of_the_calendar_is_a_date() {
    let table = [
        ("9999-12-31", "9999-12-31T00:00:00+01:00"),
        ("99991231", "9999-12-31T00:00:00+01:00"),
        ("31 Dec 9999", "9999-12-31T00:00:00+01:00"),
        ("9999-12-31 23:59:59 CET", "9999-12-31T23:59:59+01:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59-05:00"),
    ];
    for (text, expected) in table {
        assert_eq!(rfc3339(text, &in_berlin()).as_deref(), Some(expected), "{text}");
    }
    let shown = |expression: &str, now: &Zoned| {
        let text =
            format!("prompt: '{{{{ {expression} }}}}'\nflags:\n  - {{name: x, type: date}}\n");
        run_at(&text, &["--x", "9999-12-31"], now).map(|rendered| rendered.prompt)
    };
    assert_eq!(shown(".x", &in_berlin()).as_deref(), Ok("9999-12-31 00:00:00 +0100 CET"));
    for (expression, expected) in [
        (".x", "9999-12-31 00:00:00 +0000 UTC"),
        (".x.Unix", "253402214400"),
        (".x.AddDate -1 0 0", "9998-12-31 00:00:00 +0000 UTC"),
        ("toJson .x", "\"9999-12-31T00:00:00Z\""),
    ] {
        assert_eq!(shown(expression, &now()).as_deref(), Ok(expected), "{expression}");
    }
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

/// A flag does not know the zone when it is typed; the date is refused when its value is read.
#[test]
fn the_local_zone_may_be_named() {
    let named = |flag: &str, typed: &[&str], now: &Zoned| {
        let text = format!(
            "prompt: '{{{{ .x.Format \"2006-01-02 15:04 MST\" }}}}'\nflags:\n  - {{name: x, type: date{flag}}}\n"
        );
        run_at(&text, typed, now).map(|rendered| rendered.prompt)
    };
    let (typed, here) = (["--x", "2024-03-01 10:00:00 CET"], in_berlin());
    assert_eq!(named("", &typed, &here).as_deref(), Ok("2024-03-01 10:00 CET"));
    let default = ", default: 2024-07-01 10:00 CEST";
    assert_eq!(named(default, &[], &here).as_deref(), Ok("2024-07-01 10:00 CEST"));
    for (flag, typed) in [("", &typed[..]), (default, &[])] {
        let refused = named(flag, typed, &now()).expect_err("another zone's name");
        assert!(refused.contains("is not a date such as"), "{refused}");
    }
    for text in ["soon", "soon CET", "2024-03-01 10:00 C", "2024-03-01 10:00 100", "2024-02-30 CET"]
    {
        assert!(!is_date(text), "{text}");
    }
    assert!(!is_date(&format!("{} CET", "1".repeat(1 << 20))));
}

/// Before standard time a clock was ahead by odd seconds.
#[test]
fn dates_before_standard_time_are_dates() {
    let born = |zone: &str| {
        let zone = TimeZone::posix(zone).expect("a zone");
        let text = "prompt: '{{ .x.Year }} {{ date \"2006-01-02 15:04:05 Z07:00:00\" .x }} {{ toJson .x }} \
                    {{ .x.Unix }}'\nflags:\n  - {name: x, type: date}\n";
        let rendered = run_at(text, &["--x", "1879-03-14"], &now().with_time_zone(zone));
        rendered.map(|rendered| rendered.prompt)
    };
    let berlin = "1879 1879-03-14 00:00:00 +00:53:28 \"1879-03-14T00:00:00+00:53\" -2865459208";
    assert_eq!(born("LMT-0:53:28").as_deref(), Ok(berlin));
    let new_york = "1879 1879-03-14 00:00:00 -04:56:02 \"1879-03-14T00:00:00-04:56\" -2865438238";
    assert_eq!(born("LMT4:56:02").as_deref(), Ok(new_york));
}
