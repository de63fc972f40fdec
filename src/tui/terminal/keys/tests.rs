//! Keys and pastes, whole and cut.

use super::*;
use proptest::prelude::*;

fn typed(bytes: &[u8]) -> Vec<Typed> {
    let mut keys = Keys::default();
    let mut typed = keys.push(bytes);
    typed.extend(keys.give_up());
    typed
}

#[test]
fn sequences_are_keys() {
    let check = |bytes: &str, press: Press| {
        assert_eq!(typed(bytes.as_bytes()), [Typed::Press(press)], "{bytes:?}");
    };
    let plain = Press::plain;
    check("a", plain(Key::Char('a')));
    check("é", plain(Key::Char('é')));
    check("\r", plain(Key::Enter));
    check("\n", Press::ctrl('j'));
    check("\u{3}", Press::ctrl('c'));
    check("\u{1f}", Press::ctrl('7'));
    check("\u{1b}", plain(Key::Esc));
    check("\u{1b}[A", plain(Key::Up));
    check("\u{1b}OA", plain(Key::Up));
    check("\u{1b}OP", plain(Key::Function(1)));
    check("\u{1b}[3~", plain(Key::Delete));
    check("\u{1b}[1;5C", Press { ctrl: true, ..plain(Key::Right) });
    check("\u{1b}[13;2u", Press { shift: true, ..plain(Key::Enter) });
    check("\u{1b}[27;2;13~", Press { shift: true, ..plain(Key::Enter) });
    check("\u{1b}[99;5u", Press::ctrl('c'));
    check("\u{1b}[97;2u", plain(Key::Char('A')));
    check("\u{1b}\r", Press { alt: true, ..plain(Key::Enter) });
    check("\u{1b}b", Press { alt: true, ..plain(Key::Char('b')) });
    check("\u{1b}[Z", Press { shift: true, ..plain(Key::Tab) });
    // The console of Linux.
    check("\u{1b}[[A", plain(Key::Function(1)));
    check("\u{1b}[[E", plain(Key::Function(5)));
}

#[test]
fn codes_are_keys() {
    let check = |parameters: &str, press: Press| {
        let bytes = format!("\u{1b}[{parameters}u");
        assert_eq!(typed(bytes.as_bytes()), [Typed::Press(press)], "{parameters}");
    };
    let plain = Press::plain;
    let alt = |char| Press { alt: true, ..plain(Key::Char(char)) };
    // A Cyrillic, a Greek and a Hebrew letter, at the places of letters and of a sign.
    check("1089::99;5", Press::ctrl('c'));
    check("1092:1060:97;6", Press { shift: true, ..Press::ctrl('a') });
    check("946::98;3", alt('b'));
    check("1514::44;5", Press::ctrl(','));
    check("1089::99;133", Press::ctrl('c'));
    // This letter is at the place of a bracket, which has a key of its own.
    check("252:220:91;5", Press::ctrl('ü'));
    check("1089:1057:99;2", plain(Key::Char('С')));
    // Ctrl-_ and Alt-< with and without the code of Shift.
    check("45:95;6", Press::ctrl('_'));
    check("45;6", Press { shift: true, ..Press::ctrl('-') });
    check("44:60;4", alt('<'));
    check("44;4", Press { shift: true, ..alt(',') });
    check("97:65;6", Press { shift: true, ..Press::ctrl('a') });
    check("102:70;4", alt('F'));
    check("49:33;2", plain(Key::Char('!')));
    // What other terminals send as one byte.
    check("91;5", plain(Key::Esc));
    check("109;5", plain(Key::Enter));
    check("105;5", plain(Key::Tab));
    check("104;5", plain(Key::Backspace));
    check("109;7", Press { alt: true, ..plain(Key::Enter) });
    check("91:123;6", Press::ctrl('{'));
    // The numeric keypad.
    check("57414", plain(Key::Enter));
    check("57417", plain(Key::Left));
    check("57421;129", plain(Key::PageUp));
    check("57424;5", Press { ctrl: true, ..plain(Key::End) });
    check("57426", plain(Key::Delete));
    check("57406;129", plain(Key::Char('7')));
    check("57413", plain(Key::Char('+')));
}

#[test]
fn what_means_nothing_here_is_ignored() {
    for bytes in ["\u{1b}[1I", "\u{1b}[<0;1;2M", "\u{1b}[M !!", "\u{1b}[?1;2c", "\u{1b}[57441;2u"] {
        assert_eq!(typed(bytes.as_bytes()), [], "{bytes:?}");
    }
    // Super, Hyper and Meta, alone and with others.
    for bytes in
        ["[97;9u", "[121;10u", "[97;17u", "[97;33u", "[13;9u", "[1;9D", "[3;13~", "[27;9;97~"]
    {
        assert_eq!(typed(format!("\u{1b}{bytes}").as_bytes()), [], "{bytes:?}");
    }
    let after = typed(b"\x1b[<0;1;2Mx");
    assert_eq!(after, [Typed::Press(Press::plain(Key::Char('x')))]);
}

#[test]
fn a_window_that_is_looked_at_is_no_key() {
    assert_eq!(typed(b"\x1b[I"), [Typed::Focus(true)]);
    let after = typed(b"\x1b[Ox");
    assert_eq!(after, [Typed::Focus(false), Typed::Press(Press::plain(Key::Char('x')))]);
}

#[test]
fn a_reported_place_is_no_key() {
    let place = |row, column| [Typed::Place { row, column }];
    assert_eq!(typed(b"\x1b[24;80R"), place(24, 80));
    assert_eq!(typed(b"\x1b[1;80R"), place(1, 80));
    assert_eq!(typed(b"\x1b[2;1R"), place(2, 1));
    assert_eq!(typed(b"\x1b[R"), [], "that is no place");
}

/// Cut anywhere, a sequence is one key: a slow connection cancels nothing.
#[test]
fn a_cut_sequence_is_one_key() {
    for bytes in
        ["\u{1b}[13;2u", "\u{1b}OA", "é", "\u{1b}b", "\u{1b}[[A", "\u{1b}[200~x\u{1b}[201~"]
    {
        for at in 1..bytes.len() {
            let mut keys = Keys::default();
            let mut read = keys.push(&bytes.as_bytes()[..at]);
            assert!(read.is_empty() && keys.waits(), "{bytes:?} {at}");
            read.extend(keys.push(&bytes.as_bytes()[at..]));
            assert_eq!(read.len(), 1, "{bytes:?} {at}");
            assert!(!keys.waits());
        }
    }
}

#[test]
fn a_paste_is_one_text_and_may_lose_its_end() {
    let paste = b"\x1b[200~one\r\ntwo\rthree\x1b[A\x1b[201~x";
    let mut keys = Keys::default();
    let text = Typed::Paste("one\ntwo\nthree\u{1b}[A".to_owned());
    let press = Typed::Press(Press::plain(Key::Char('x')));
    assert_eq!(keys.push(paste), [text, press.clone()]);
    assert_eq!(keys.push(b"\x1b[200~lost"), []);
    assert!(keys.is_pasting());
    assert_eq!(keys.give_up(), [Typed::Paste("lost".to_owned())]);
    assert_eq!(keys.push(b"x"), [press]);
}

/// What is too long is dropped, which is said, and the keys after it are read.
#[test]
fn a_paste_has_a_limit() {
    let mut keys = Keys::default();
    let piece = vec![b'x'; PASTE_BYTES_MAX / 4];
    keys.push(b"\x1b[200~");
    for _ in 0..5 {
        assert_eq!(keys.push(&piece), []);
    }
    let typed = keys.push(b"\x1b[201~y");
    let Some(Typed::Paste(text)) = typed.first() else { panic!("no paste: {} keys", typed.len()) };
    let rest = [Typed::PasteCut, Typed::Press(Press::plain(Key::Char('y')))];
    assert_eq!((text.len(), &typed[1..]), (PASTE_BYTES_MAX, &rest[..]));
    keys.push(b"\x1b[200~");
    for _ in 0..4 {
        keys.push(&piece);
    }
    let whole = keys.push(b"\x1b[201~");
    assert_eq!(whole.len(), 1, "a paste that just fits is whole");
}

proptest! {
    /// Where bytes are cut makes no difference, and nothing stays behind.
    #[test]
    fn cuts_make_no_difference(
        bytes in proptest::collection::vec(
            prop_oneof![Just(ESC), Just(b'['), Just(b'O'), Just(b'2'), Just(b'0'), Just(b'~'), any::<u8>()],
            0..80,
        ),
        at in 0usize..80,
    ) {
        let at = at.min(bytes.len());
        let mut keys = Keys::default();
        let mut cut = keys.push(&bytes[..at]);
        cut.extend(keys.push(&bytes[at..]));
        cut.extend(keys.give_up());
        prop_assert_eq!(cut, typed(&bytes));
        prop_assert!(!keys.waits());
    }
}
