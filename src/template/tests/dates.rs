//! Dates, the time now, and spans of time. Now is 2026-11-22T14:30:05+02:00.

use super::{check, check_errors};

#[test]
fn now_is_the_time_that_is_given() {
    check(&[
        (r#"{{now}} {{now | date "2006-01-02"}}"#, "2026-11-22 14:30:05 +0200 +0200 2026-11-22"),
        ("{{htmlDate now}} {{unixEpoch now}} {{now | toDate}}", "2026-11-22 1795350605 2026-11-22"),
        (r#"{{ago "2026-11-22T11:00:00Z"}} {{durationRound "2026-11-20"}}"#, "1h30m5s 2d"),
    ]);
}

#[test]
fn dates_are_changed_and_shown_elsewhere() {
    check(&[
        (
            r#"{{dateModify "-24h" "2024-03-01T10:00:00+01:00"}} {{"2024-01-01" | date_modify "1h30m" | date "15:04"}}"#,
            "2024-02-29 10:00:00 +0100 +0100 01:30",
        ),
        (r#"{{mustDateModify "0.5s" "2024-01-01T00:00:00Z"}}"#, "2024-01-01 00:00:00.5 +0000 UTC"),
        (
            r#"{{dateInZone "2006-01-02 15:04" now "UTC"}} {{date_in_zone "15:04" "2024-01-01T00:00:00Z" "Local"}}"#,
            "2026-11-22 12:30 02:00",
        ),
        (r#"{{htmlDateInZone "2024-01-01T00:30:00+01:00" "UTC"}}"#, "2023-12-31"),
        (
            r#"{{unixEpoch "9999-12-31"}} {{dateModify "-24h" "9999-12-31"}}"#,
            "253402207200 9999-12-30 00:00:00 +0200 +0200",
        ),
        (r#"{{unixEpoch "1970-01-02"}} {{htmlDate "2024-03-05T14:07:09Z"}}"#, "79200 2024-03-05"),
    ]);
    check_errors(&[
        (r#"{{dateModify "a day" now}}"#, 1, "as in 24h"),
        (r#"{{dateModify "99999999h" now}}"#, 1, "as in 24h"),
        (r#"{{dateModify "-2000000h" "0001-01-01"}}"#, 1, "out of range"),
        (r#"{{dateModify "2000000h" "9999-01-01"}}"#, 1, "out of range"),
        (r#"{{dateModify "24h" "9999-12-31"}}"#, 1, "out of range"),
        (r#"{{dateInZone "15" "9999-12-31T23:30:00-05:00" "UTC"}}"#, 1, "out of range"),
        (r#"{{dateInZone "15" now "No/Where"}}"#, 1, "Europe/Berlin"),
        (r#"{{ago "0001-01-01"}}"#, 1, "out of range"),
        ("{{now 1}}", 1, "want 0, got 1"),
    ]);
}

#[test]
fn spans_of_time() {
    check(&[
        (
            r#"{{duration "95"}} {{duration 3600}} {{duration 0}} {{duration -5}}"#,
            "1m35s 1h0m0s 0s -5s",
        ),
        (r#"{{duration "095"}} {{duration "0x10"}} {{duration "95.0"}}"#, "1m35s 0s 0s"),
        (
            r#"{{durationRound "2400h10m5s"}} {{durationRound "2h10m5s"}} {{durationRound "-90s"}} {{durationRound 1500000000}} {{durationRound "1ms"}}"#,
            "3mo 2h 1m 1s 0s",
        ),
        (
            r#"{{durationRound "1.5h"}} {{durationRound "+.5m1µs"}} {{durationRound "0"}} {{durationRound "20000h"}}"#,
            "1h 30s 0s 2y",
        ),
    ]);
    check_errors(&[
        (r#"{{durationRound ""}}"#, 1, "not a date"),
        (r#"{{durationRound "1.2.3s"}}"#, 1, "not a date"),
        (r#"{{durationRound "99999999999999999999s"}}"#, 1, "not a date"),
        (r#"{{durationRound "-"}}"#, 1, "not a date"),
        ("{{duration 9223372036854775807}}", 1, "out of range"),
    ]);
}

/// What Go 1.26 writes for these layouts.
#[test]
fn layouts_are_those_of_go() {
    let layouts = [
        ("_2006", "_2024"),
        ("_2_2006", " 9_2024"),
        ("__2006", " 69024"),
        ("_20", " 90"),
        ("Jan Janet JanE January", "Mar Janet MarE March"),
        ("Mon Month MonX Monday", "Sat Month SatX Saturday"),
        ("Jan\u{e4}", "Mar\u{e4}"),
        ("15:04:05.999 15:04:05,999", "14:05:07.12 14:05:07,12"),
        (".000 x,000 05 .9", ".120 x,120 07 .1"),
        ("05.0001 05.000_2 5.9x 05.0.0", "07.0003 07.120 9 7.1x 07.1.1"),
        ("05.9999999999 05.0000000000", "07.12 07.120000000"),
        ("02.01.2006 15.04", "09.03.2024 14.05"),
        ("Z07 Z0700 Z07:00 Z070000 Z07:00:00", "+01 +0100 +01:00 +010000 +01:00:00"),
        ("-07 -0700 -07:00 -070000 -07:00:00 -0", "+01 +0100 +01:00 +010000 +01:00:00 -0"),
        ("Z07:0 02x 32 002 003", "+01:0 09x 29 069 002"),
    ];
    for (layout, expected) in layouts {
        let template = format!("{{{{date {layout:?} \"2024-03-09T14:05:07.12+01:00\"}}}}");
        check(&[(&template, expected)]);
    }
    check(&[(r#"{{date "Z07 Z070000 .9" "2024-03-09T04:05:07Z"}}"#, "Z Z ")]);
}
