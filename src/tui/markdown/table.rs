//! Tables: aligned columns without borders, or a list where the screen is too narrow for them.

use super::super::text::{Span, width};
use super::render::Runs;
use super::rest::{Columns, Walk};
use super::theme::{Role, Theme};
use super::{Align, Inline, Table};
use ratatui_core::style::Style;

/// The space between two columns. No line is drawn there: terminals do not agree on the width of
/// emoji, and a line would show it.
const GAP: usize = 2;

/// A column that is wrapped to less than this can't be read.
const COLUMN_MIN: usize = 8;

type Spans = Vec<Span>;

/// A line, and where its text ends if it ends a row.
type Ended = (Spans, Option<usize>);

/// The lines of `table`, at most `width` columns wide, but for the rows that `walk` leaves out.
pub(super) fn lines(
    table: &Table,
    width: usize,
    theme: &Theme,
    base: Style,
    walk: &mut Walk<'_>,
) -> Vec<Ended> {
    let bold = base.patch(theme.style(Role::TableHead));
    let runs = |cells: &Vec<Vec<Inline>>, style| -> Vec<Runs> {
        cells.iter().map(|cell| Runs::inline(cell, theme, style)).collect()
    };
    let head = runs(&table.head, bold);
    let rows: Vec<Vec<Runs>> = table.rows.iter().map(|cells| runs(cells, base)).collect();
    let natural = natural_widths(std::iter::once(&head).chain(&rows), table.columns.len());
    let start = walk.end();
    let printed = walk.columns(width).filter(|it| it.widths.len() == natural.len());
    let left = Left::of(&head, rows, walk);
    let kept = printed.and_then(|printed| kept(&printed.widths, &natural, width));
    let Some(widths) = kept.or_else(|| fit(&natural, width)) else {
        walk.table(start, None);
        return as_list(&head, &left, width, bold);
    };
    let grid = Grid { columns: &table.columns, widths };
    let mut lines = Vec::new();
    if let Some(end) = left.head {
        let mark = if theme.is_plain() { "-" } else { "─" };
        let rule: Vec<_> = grid.widths.iter().map(|width| mark.repeat(*width)).collect();
        let rule = Span::styled(rule.join(&" ".repeat(GAP)), theme.style(Role::Rule));
        lines.extend(ended(grid.row(&head).into_iter().chain([vec![rule]]).collect(), end));
    }
    let rows: Vec<_> = left.rows.iter().map(|(cells, end)| (grid.row(cells), *end)).collect();
    let is_loose = match printed {
        Some(printed) => printed.is_loose,
        None => rows.iter().any(|(row, _)| row.len() > 1),
    };
    let is_first = rows.len() == table.rows.len();
    for (at, (row, end)) in rows.into_iter().enumerate() {
        if is_loose && (at > 0 || !is_first) {
            lines.push((Vec::new(), None));
        }
        lines.extend(ended(row, end));
    }
    walk.table(start, Some(Columns { page: width, widths: grid.widths, is_loose }));
    lines
}

/// The unprinted parts of a table, each with the end of its text.
struct Left {
    head: Option<usize>,
    rows: Vec<(Vec<Runs>, usize)>,
}

impl Left {
    fn of(head: &[Runs], rows: Vec<Vec<Runs>>, walk: &mut Walk<'_>) -> Self {
        // A row is printed as a whole, so a part of it was never printed.
        let mut leaf = |cells: &[Runs]| {
            let texts: Vec<_> = cells.iter().map(|cell| cell.text.as_str()).collect();
            walk.leaf(&texts.join(" ")).map(|_| walk.end())
        };
        let head = leaf(head);
        let rows = rows.into_iter().filter_map(|cells| leaf(&cells).map(|end| (cells, end)));
        Self { head, rows: rows.collect() }
    }
}

/// The lines of a part whose text ends there.
fn ended(lines: Vec<Spans>, end: usize) -> impl Iterator<Item = Ended> {
    let last = lines.len().saturating_sub(1);
    lines.into_iter().enumerate().map(move |(at, spans)| (spans, (at == last).then_some(end)))
}

/// The widest line of each column.
fn natural_widths<'a>(rows: impl Iterator<Item = &'a Vec<Runs>>, columns: usize) -> Vec<usize> {
    let mut widths = vec![1; columns];
    for cells in rows {
        for (widest, cell) in widths.iter_mut().zip(cells) {
            *widest = cell.text.split('\n').map(width).fold(*widest, usize::max);
        }
    }
    widths
}

/// The widths of columns that together fit into `width`: narrow columns keep theirs, wide ones share
/// what is left.
fn fit(natural: &[usize], width: usize) -> Option<Vec<usize>> {
    let gaps = GAP * natural.len().saturating_sub(1);
    let mut left = width.checked_sub(gaps)?;
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|column| natural[*column]);
    let mut widths = natural.to_vec();
    for (at, column) in order.iter().enumerate() {
        let share = left / (natural.len() - at);
        if natural[*column] > share {
            if share < COLUMN_MIN {
                return None;
            }
            widths[*column] = share;
        }
        left -= widths[*column];
    }
    Some(widths)
}

/// The widths of a table of which a part was printed with the widths `printed`: they stay, as far as what has come
/// since can be read in them; the last column has what is left of the line.
fn kept(printed: &[usize], natural: &[usize], width: usize) -> Option<Vec<usize>> {
    let columns = printed.iter().zip(natural);
    let wider = |(kept, natural): (&usize, &usize)| *kept.max(natural.min(&COLUMN_MIN));
    let mut widths: Vec<_> = columns.map(wider).collect();
    let (last, natural) = (widths.pop()?, *natural.last()?);
    let room = width.checked_sub(widths.iter().map(|width| width + GAP).sum())?;
    let last = natural.clamp(last.min(room), room);
    widths.push(last);
    (last >= natural.min(COLUMN_MIN)).then_some(widths)
}

/// One line `head: value` for each cell, and an empty line between rows.
fn as_list(head: &[Runs], left: &Left, width: usize, bold: Style) -> Vec<Ended> {
    if let (true, Some(end)) = (left.rows.is_empty(), left.head) {
        return ended(head.iter().flat_map(|cell| cell.wrapped(width)).collect(), end).collect();
    }
    let mut lines = Vec::new();
    for (at, (cells, end)) in left.rows.iter().enumerate() {
        if at > 0 {
            lines.push((Vec::new(), None));
        }
        let mut row = Vec::new();
        for (name, value) in head.iter().zip(cells) {
            let mut line = Runs::default();
            if !name.text.is_empty() {
                line.append(name);
                line.append(&Runs::from([(": ", bold)]));
            }
            line.append(value);
            if !line.text.is_empty() {
                row.extend(line.wrapped(width));
            }
        }
        lines.extend(ended(row, *end));
    }
    lines
}

struct Grid<'a> {
    columns: &'a [Align],
    widths: Vec<usize>,
}

impl Grid<'_> {
    /// The lines of one row.
    fn row(&self, cells: &[Runs]) -> Vec<Spans> {
        let wrapped = cells.iter().zip(&self.widths).map(|(cell, width)| cell.wrapped(*width));
        let mut wrapped: Vec<Vec<Spans>> = wrapped.collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let lines = (0..height).map(|at| {
            let cells = wrapped.iter_mut().map(|lines| lines.get_mut(at).map(std::mem::take));
            self.line(cells.map(Option::unwrap_or_default).collect())
        });
        lines.collect()
    }

    fn line(&self, cells: Vec<Spans>) -> Spans {
        let mut line = Spans::new();
        // Spaces that nothing may follow.
        let mut spaces = 0;
        for ((cell, columns), align) in cells.into_iter().zip(&self.widths).zip(self.columns) {
            let taken: usize = cell.iter().map(|span| width(&span.content)).sum();
            let left = columns.saturating_sub(taken);
            let before = match align {
                Align::Left => 0,
                Align::Centre => left / 2,
                Align::Right => left,
            };
            if taken > 0 {
                if spaces + before > 0 {
                    line.push(Span::raw(" ".repeat(spaces + before)));
                }
                line.extend(cell);
                spaces = left - before + GAP;
            } else {
                spaces += columns + GAP;
            }
        }
        line
    }
}
