//! Lists at the line: those to choose from, and the candidates of a completion.

use super::look::{Look, Part};
use super::{one_line, styled};
use crate::tui::commands::Name;
use crate::tui::input::Editor;
use crate::tui::model::{Picker, PickerKind, State};
use crate::tui::text::Line;
use ratatui_core::style::Style;

/// Rows of candidates for a completion.
const CANDIDATE_ROWS_MAX: usize = 8;

/// The search of a list, as an editor.
pub(super) fn search(picker: &Picker) -> Editor {
    let mut editor = Editor::default();
    editor.set(picker.search.clone());
    editor
}

pub(super) fn list(
    state: &State,
    picker: &Picker,
    look: &Look,
    columns: usize,
    rows: usize,
) -> Vec<Line> {
    let matching = picker.matching();
    let title = title(state, picker, matching.is_empty());
    let mut lines = vec![styled(one_line(&title, columns), look.style(Part::Question))];
    let shown = rows.saturating_sub(2).max(1);
    let first = (picker.selected + 1).saturating_sub(shown);
    for (number, choice) in matching.iter().enumerate().skip(first).take(shown) {
        let is_chosen = number == picker.selected;
        let sign = if is_chosen { "> " } else { "  " };
        let detail = match choice.detail.as_str() {
            "" => String::new(),
            detail => format!("  {detail}"),
        };
        let style = if is_chosen { look.style(Part::Chosen) } else { Style::new() };
        let text = one_line(&format!("{}{detail}", choice.title), columns.saturating_sub(2).max(1));
        let sign = if columns > 2 { sign } else { "" };
        lines.push(styled(format!("{sign}{text}"), style));
    }
    lines
}

/// What a list is about, and what its keys do.
fn title(state: &State, picker: &Picker, is_empty: bool) -> String {
    let (what, takes) = match picker.kind {
        PickerKind::Session => ("conversation", "goes on"),
        PickerKind::Prompt => ("prompt", "takes one"),
        PickerKind::Model => ("model", "chooses"),
        PickerKind::Profile => ("profile", "chooses"),
        PickerKind::Rewind => ("prompt", "asks from there on anew"),
    };
    if picker.is_loading {
        return format!("The {what}s are being listed · Esc closes");
    }
    if is_empty {
        let written = if picker.kind == PickerKind::Model { "; Enter takes this name" } else { "" };
        let (is, written) = match picker.search.trim() {
            "" => {
                ("is listed", written.replace("takes this name", "takes the name that you write"))
            }
            _ => ("matches", written.to_owned()),
        };
        return format!("No {what} {is}{written}");
    }
    let answers = match picker.kind {
        PickerKind::Model | PickerKind::Profile => {
            format!(" · {} answers now", state.status.answers_with())
        }
        PickerKind::Session | PickerKind::Prompt | PickerKind::Rewind => String::new(),
    };
    let (first, rest) = what.split_at(1);
    let first = first.to_uppercase();
    format!("{first}{rest}s: type to search, Enter {takes}, Esc closes{answers}")
}

pub(super) fn candidates(state: &State, look: &Look, columns: usize) -> Vec<Line> {
    let Some(found) = &state.candidates else { return Vec::new() };
    if state.picker.is_some() {
        return Vec::new();
    }
    let first = found.selected.map_or(0, |at| (at + 1).saturating_sub(CANDIDATE_ROWS_MAX));
    let shown = found.words.iter().enumerate().skip(first).take(CANDIDATE_ROWS_MAX);
    let command = |word: &str| {
        let mut names = Name::ALL.into_iter();
        names.find(|name| word.strip_prefix('/') == Some(name.as_str()))
    };
    let usage = |word: &str, name: Name| format!("{word} {}", name.parameter());
    let widths = shown.clone().filter_map(|(_, word)| Some(usage(word, command(word)?).len()));
    let usage_columns = widths.max().unwrap_or_default();
    let about = |word: &String| match command(word) {
        Some(name) => format!("{:<usage_columns$}  {}", usage(word, name), name.about()),
        None => word.clone(),
    };
    let mut lines: Vec<_> = shown
        .map(|(number, word)| {
            let (sign, part) = match found.selected == Some(number) {
                true => ("> ", Part::Chosen),
                false => ("  ", Part::Quiet),
            };
            styled(one_line(&format!("{sign}{}", about(word)), columns), look.style(part))
        })
        .collect();
    let more = found.words.len().saturating_sub(first + CANDIDATE_ROWS_MAX);
    let more = (more > 0).then(|| one_line(&format!("  … {more} more"), columns));
    lines.extend(more.map(|more| styled(more, look.style(Part::Quiet))));
    lines
}
