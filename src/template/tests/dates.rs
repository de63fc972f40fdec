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
        (r#"{{unixEpoch "1970-01-02"}} {{htmlDate "2024-03-05T14:07:09Z"}}"#, "79200 2024-03-05"),
    ]);
    check_errors(&[
        (r#"{{dateModify "a day" now}}"#, 1, "as in 24h"),
        (r#"{{dateModify "99999999h" now}}"#, 1, "as in 24h"),
        (r#"{{dateModify "-2000000h" "0001-01-01"}}"#, 1, "out of range"),
        (r#"{{dateModify "2000000h" "9999-01-01"}}"#, 1, "out of range"),
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
