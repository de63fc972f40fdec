//! vi keys in the line: text is inserted, or keys are commands.

use super::{Action, State};
use crate::tui::input::Move;
use crate::tui::terminal::keys::{Key, Press};
use std::ops::Range;

/// How often a command is repeated at most.
const COUNT_MAX: usize = 1_000;

const NO_COMMAND: &str = "that key is no command of the line; i inserts text, Enter sends";

/// The state of the vi keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vi {
    /// Keys are commands.
    pub(crate) is_normal: bool,
    count: Option<usize>,
    /// The operator that waits for a motion, and its own count.
    operator: Option<(Operator, usize)>,
    /// The next key replaces a character.
    replaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Copy,
}

impl Vi {
    fn is_pending(&self) -> bool {
        self.count.is_some() || self.operator.is_some() || self.replaces
    }

    fn commands(is_normal: bool) -> Self {
        Self { is_normal, ..Self::default() }
    }
}

impl State {
    /// Whether keys are commands.
    pub(crate) fn is_in_normal_mode(&self) -> bool {
        self.vi.as_ref().is_some_and(|vi| vi.is_normal)
    }

    /// The line was sent or cleared: text follows.
    pub(super) fn inserts_again(&mut self) {
        self.vi = self.vi.take().map(|_| Vi::default());
    }

    /// A key for vi; `None` if it means what it means without vi.
    pub(super) fn vi_press(&mut self, press: Press) -> Option<Vec<Action>> {
        let vi = self.vi.as_mut()?;
        if press.ctrl {
            return None;
        }
        if press.alt {
            return matches!(press.key, Key::Char(_)).then(|| self.escape_and_key(press));
        }
        match press.key {
            // On an empty line there is nothing to command: Esc stops the answer, as ever.
            Key::Esc if !vi.is_normal && !self.editor.is_empty() => {
                *vi = Vi::commands(true);
                self.candidates = None;
                if self.editor.cursor() > self.editor.lines(1).start {
                    self.editor.go(Move::Left);
                }
            }
            Key::Esc if vi.is_pending() => *vi = Vi::commands(true),
            Key::Char(char) if vi.is_normal => return Some(self.command_key(char)),
            // No character replaces another with it.
            Key::Backspace if vi.replaces => *vi = Vi::commands(true),
            Key::Backspace if vi.is_normal => return Some(self.command_key('h')),
            Key::Char(_)
            | Key::Esc
            | Key::Enter
            | Key::Tab
            | Key::Backspace
            | Key::Delete
            | Key::Up
            | Key::Down
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End
            | Key::PageUp
            | Key::PageDown
            | Key::Function(_) => return None,
        }
        Some(Vec::new())
    }

    /// A character with Alt: most terminals send Esc before the character, and so do Esc and the character that are
    /// pressed quickly, or that come together over a slow connection. With vi it is that.
    fn escape_and_key(&mut self, press: Press) -> Vec<Action> {
        let mut actions = self.pressed(Press::plain(Key::Esc));
        actions.extend(self.pressed(Press { alt: false, ..press }));
        actions
    }

    fn command_key(&mut self, char: char) -> Vec<Action> {
        let Some(vi) = &mut self.vi else { return Vec::new() };
        if let Some(digit) = char.to_digit(10).filter(|digit| *digit > 0 || vi.count.is_some())
            && !vi.replaces
        {
            let digit = usize::try_from(digit).unwrap_or(0);
            vi.count = Some((vi.count.unwrap_or(0) * 10 + digit).min(COUNT_MAX));
            return Vec::new();
        }
        let Vi { count, operator, replaces, .. } = std::mem::replace(vi, Vi::commands(true));
        let times = count.unwrap_or(1);
        if replaces {
            self.editor.replace_chars(char, times);
        } else if let Some(motion) = motion(char) {
            let before = operator.map_or(1, |(_, before)| before);
            self.moved(motion, times * before, operator.map(|(operator, _)| operator));
        } else if let Some(next) = operator_of(char) {
            match operator {
                Some((operator, before)) if operator == next => {
                    self.operate_on_lines(operator, times * before);
                }
                Some(_) => self.hint(NO_COMMAND),
                None => {
                    let operator = Some((next, times));
                    *vi_of(&mut self.vi) = Vi { operator, ..Vi::commands(true) };
                }
            }
        } else {
            match operator {
                Some((operator, _)) if char == 'G' => {
                    self.operate_on(operator, self.editor.lines_to_end());
                }
                Some(_) => self.hint(NO_COMMAND),
                None => self.simple_command(char, count),
            }
        }
        self.history.leave_unless_shown(&self.editor.expanded());
        if self.is_in_normal_mode() {
            self.editor.stay_on_line();
        }
        Vec::new()
    }

    fn moved(&mut self, motion: Move, times: usize, operator: Option<Operator>) {
        let Some(operator) = operator else {
            return self.editor.go_by(motion, times);
        };
        let range = match (operator, motion) {
            (Operator::Change, Move::NextWord) => self.editor.passed_by_change(times),
            (_, motion) => self.editor.passed(motion, times),
        };
        match operator {
            Operator::Copy => {
                self.editor.copy(range.clone(), false);
                if range.start < self.editor.cursor() {
                    self.editor.go_by(motion, times);
                }
            }
            Operator::Delete => self.editor.cut(range, false),
            Operator::Change => {
                self.editor.cut(range, false);
                self.inserts_again();
            }
        }
    }

    fn operate_on_lines(&mut self, operator: Operator, count: usize) {
        self.operate_on(operator, self.editor.lines(count));
    }

    /// Does it with these whole lines.
    fn operate_on(&mut self, operator: Operator, lines: Range<usize>) {
        match operator {
            Operator::Copy => self.editor.copy(lines, true),
            Operator::Delete => self.editor.cut(lines, true),
            Operator::Change => {
                self.editor.cut(lines, false);
                self.inserts_again();
            }
        }
    }

    fn simple_command(&mut self, char: char, count: Option<usize>) {
        let times = count.unwrap_or(1);
        match char {
            'i' => self.inserts_again(),
            'I' => self.inserts_at(Move::FirstOfLine),
            'a' if !self.is_at_line_end() => self.inserts_at(Move::Right),
            'a' => self.inserts_again(),
            'A' => self.inserts_at(Move::LineEnd),
            'o' => {
                self.inserts_at(Move::LineEnd);
                self.editor.insert("\n");
            }
            'O' => {
                self.inserts_at(Move::LineStart);
                self.editor.insert("\n");
                self.editor.go(Move::Left);
            }
            'x' => self.moved(Move::Right, times, Some(Operator::Delete)),
            'X' => self.moved(Move::Left, times, Some(Operator::Delete)),
            's' => self.moved(Move::Right, times, Some(Operator::Change)),
            'S' => self.operate_on_lines(Operator::Change, times),
            'D' => self.moved(Move::LineEnd, 1, Some(Operator::Delete)),
            'C' => self.moved(Move::LineEnd, 1, Some(Operator::Change)),
            'Y' => self.operate_on_lines(Operator::Copy, times),
            'p' | 'P' => self.editor.put_back(char == 'p'),
            'u' => self.take_back_change(),
            'r' => {
                *vi_of(&mut self.vi) = Vi { is_normal: true, count, operator: None, replaces: true }
            }
            'j' if !self.editor.down() => self.look_forward(),
            'k' if !self.editor.up() => self.look_back(),
            'j' | 'k' => {}
            'G' => self.editor.go(Move::End),
            _ => self.hint(NO_COMMAND),
        }
    }

    fn inserts_at(&mut self, place: Move) {
        self.editor.go(place);
        self.inserts_again();
    }

    fn is_at_line_end(&self) -> bool {
        let rest = &self.editor.text()[self.editor.cursor()..];
        rest.is_empty() || rest.starts_with('\n')
    }
}

fn vi_of(vi: &mut Option<Vi>) -> &mut Vi {
    vi.get_or_insert_default()
}

fn motion(char: char) -> Option<Move> {
    Some(match char {
        'h' => Move::Left,
        'l' | ' ' => Move::Right,
        'w' => Move::NextWord,
        'b' => Move::PreviousWord,
        'e' => Move::WordEnd,
        '0' => Move::LineStart,
        '^' => Move::FirstOfLine,
        '$' => Move::LineEnd,
        _ => return None,
    })
}

fn operator_of(char: char) -> Option<Operator> {
    Some(match char {
        'd' => Operator::Delete,
        'c' => Operator::Change,
        'y' => Operator::Copy,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::tests::Scene;

    /// The line with the cursor as `|` after these keys; `E` is Esc, `B` is Backspace and `N` begins another line.
    #[track_caller]
    fn check(keys: &str, expected: &str) {
        let mut scene = Scene::new();
        scene.state.vi = Some(Vi::default());
        for char in keys.chars() {
            match char {
                'E' => scene.key(Key::Esc),
                'B' => scene.key(Key::Backspace),
                'N' => scene.press(Press::ctrl('j')),
                char => scene.key(Key::Char(char)),
            }
        }
        let editor = &scene.state.editor;
        let (before, after) = editor.text().split_at(editor.cursor());
        assert_eq!(format!("{before}|{after}"), expected, "{keys}");
    }

    #[test]
    fn motions_lead_where_vi_goes() {
        check("one two-xEb", "one two|-x");
        check("one two-xE0", "|one two-x");
        check("one two-xE0w", "one |two-x");
        check("one two-xE0ww", "one two|-x");
        check("one two-xE0e", "on|e two-x");
        check("one two-xE03l", "one| two-x");
        check("  oneE^", "  |one");
        check("one twoE0$", "one tw|o");
        check("oneNtwoEk", "on|e\ntwo");
        check("oneNtwoEkj", "one\ntw|o");
        check("oneNtwoE0kG", "one\ntw|o");
    }

    #[test]
    fn operators_take_motions_and_lines() {
        check("one two threeE0dw", "|two three");
        check("one two threeE0d2w", "|three");
        check("one two threeE02dw", "|three");
        check("a b c d e f gE02d3w", "|g");
        check("one two threeEdb", "one two |e");
        check("one two threeE0de", "| two three");
        check("one two threeE0wd$", "one| ");
        check("one two threeE0wcwxx", "one xx| three");
        check("a cat satE0cw", "| cat sat");
        check("a cat satE02cwx", "x| sat");
        check("one.two sixE0ecw", "on|.two six");
        check("one.two sixE0wcw", "one|two six");
        check("aNbE0kcwx", "x|\nb");
        check("aEcwx", "x|");
        check("a  bE0lcw", "a|b");
        check("one two threeE0wCxx", "one xx|");
        check("oneNtwoNthreeEkdd", "one\n|three");
        check("oneNtwoNthreeEddp", "one\ntwo\n|three");
        check("oneNtwoEyykP", "|two\none\ntwo");
        check("oneE0ywP", "on|eone");
        check("oneNtwoEccx", "one\nx|");
        check("one twoE0dwdw", "|");
        check("oneNtwoE0kdwx", "|\ntwo");
        check("oneNtwoNthreeEkdG", "on|e");
        check("oneNtwoEkdG", "|");
        check("oneNtwoNthreeEkcGx", "one\nx|");
        check("oneNtwoEkyGP", "|one\ntwo\none\ntwo");
        check("oneNtwoEkyG", "on|e\ntwo");
    }

    #[test]
    fn a_key_that_is_no_motion_after_an_operator_is_said_to_be_none() {
        for keys in ["dq", "dj", "cd", "yx"] {
            let mut scene = Scene::new();
            scene.state.vi = Some(Vi::default());
            scene.write("one");
            scene.key(Key::Esc);
            scene.write(keys);
            assert_eq!(scene.state.shown_hint(), Some(NO_COMMAND), "{keys}");
            assert_eq!(scene.state.editor.text(), "one", "{keys}");
        }
    }

    /// Most terminals send the same bytes for both.
    #[test]
    fn a_character_with_alt_is_esc_and_that_character() {
        let alt = |key: Key| Press { alt: true, ..Press::plain(key) };
        let mut scene = Scene::new();
        scene.state.vi = Some(Vi::default());
        scene.write("one two");
        scene.press(alt(Key::Char('b')));
        assert!(scene.state.is_in_normal_mode());
        assert_eq!(scene.state.editor.cursor(), 4);
        scene.write("d");
        scene.press(alt(Key::Char('x')));
        assert_eq!(scene.state.editor.text(), "one wo", "Esc ends the operator");
        scene.write("A");
        scene.press(alt(Key::Enter));
        assert!(!scene.state.is_in_normal_mode());
        assert_eq!(scene.state.editor.text(), "one wo\n");
        scene.write("three four");
        scene.press(alt(Key::Backspace));
        assert_eq!(scene.state.editor.text(), "one wo\nthree ");
    }

    #[test]
    fn single_keys_change_and_undo() {
        check("abcEx", "a|b");
        check("abcE0x", "|bc");
        check("abcEX", "a|c");
        check("abcE02x", "|c");
        check("abcE0rx", "|xbc");
        check("abcE0xp", "b|ac");
        check("abcE0sxy", "xy|bc");
        check("abcE0xu", "|abc");
        check("abcE0ix", "x|abc");
        check("abcE0ax", "ax|bc");
        check("abcE0Ax", "abcx|");
        check("a bcEIx", "x|a bc");
        check("abcEox", "abc\nx|");
        check("abcEOx", "x|\nabc");
        check("abcEqZ", "ab|c");
        check("abcEd0", "|c");
        check("abcEdEix", "abx|c");
    }

    /// In a command it is `h`; where text is inserted it deletes, as everywhere.
    #[test]
    fn backspace_stays_on_the_line_of_a_command() {
        check("oneNtwoEB", "one\nt|wo");
        check("oneNtwoE0B", "one\n|two");
        check("oneNtwoE2B", "one\n|two");
        check("oneNtwoEdB", "one\nt|o");
        check("oneNtwoErBx", "one\nt|w");
        check("oneNtwoE0iB", "one|two");
        check("oneNtwoEaBB", "one\nt|");
    }

    #[test]
    fn characters_are_those_of_the_line() {
        check("oneNEsx", "one\nx|");
        check("oneNNtwoEksx", "one\nx|\ntwo");
        check("oneNtwoE0X", "one\n|two");
        check("oneNtwoE9X", "one\n|o");
        check("abNcdEk05x", "|\ncd");
        check("abNcdEk0d9l", "|\ncd");
        check("abNcdEd9h", "ab\n|d");
        check("abNcdE0y9hP", "ab\n|cd");
        check("abNcdE9yhP", "ab\n|ccd");
        check("abNcdE9h", "ab\n|cd");
        check("abNcdEk9l", "a|b\ncd");
        check("abE09rx", "|ab");
        check("abE02rx", "|xx");
        check("abNcdEk03rx", "|ab\ncd");
        // What was cut stays where there is nothing to cut.
        check("abE0xxxp", "|b");
    }

    #[test]
    fn earlier_prompts_are_walked_with_j_and_k() {
        let mut scene = Scene::new();
        scene.state.vi = Some(Vi::default());
        for prompt in ["one", "two", "three"] {
            scene.state.history.add(prompt);
        }
        scene.write("draft");
        scene.key(Key::Esc);
        let mut seen = Vec::new();
        for char in "kklkkjjj".chars() {
            scene.key(Key::Char(char));
            seen.push(scene.state.editor.text().to_owned());
        }
        assert_eq!(seen, ["three", "two", "two", "one", "one", "two", "three", "draft"]);
        // A changed prompt is a draft of its own; what was written before is the newest prompt.
        scene.write("kkx");
        assert_eq!(scene.state.editor.text(), "tw");
        scene.write("k");
        assert_eq!(scene.state.editor.text(), "draft");
    }

    #[test]
    fn esc_on_an_empty_line_and_enter_are_as_ever() {
        let mut scene = Scene::new();
        scene.state.vi = Some(Vi::default());
        scene.ask("r", "go");
        scene.write("x");
        scene.key(Key::Esc);
        assert!(scene.state.is_in_normal_mode() && scene.cancelled().is_empty());
        scene.write("x");
        scene.write("inext");
        scene.key(Key::Esc);
        scene.key(Key::Enter);
        assert_eq!(scene.asked()[1..], [("next", None)]);
        assert!(!scene.state.is_in_normal_mode(), "the next prompt is text");
        scene.key(Key::Esc);
        assert_eq!(scene.cancelled().last(), Some(&Some("r")));
    }
}
