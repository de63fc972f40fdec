//! Where the chat is shown: under the scrollback, on the full screen, or as plain lines.

use crate::support::files::write_all;
use crate::tui::display::{FullScreen, Inline, Next};
use crate::tui::model::{Lines, Piece, Scroll, Size, State};
use crate::tui::terminal::{self, Terminal};
use crate::tui::text::{Line, is_sent};
use crate::tui::view::{Live, Look, Pager, Printer, page, shows_question, under_scrollback};
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};

/// Time between two looks at whether the terminal takes output again.
pub(super) const ROOM_TIME: Duration = Duration::from_millis(33);

/// Where the chat is shown.
pub(crate) enum Screen {
    Inline { terminal: Terminal, inline: Box<Inline>, printer: Printer },
    Full { terminal: Terminal, full: FullScreen, pager: Box<Pager> },
    Plain { output: File, printer: Printer, is_shown: bool, echoes: bool },
}

impl Screen {
    /// Under the scrollback of `terminal`.
    pub(crate) fn inline(terminal: Terminal, look: Look, reflows: bool) -> Self {
        let inline = Box::new(Inline::new(reflows));
        Self::Inline { terminal, inline, printer: Printer::new(look, true) }
    }

    /// On the alternate screen of `terminal`.
    pub(crate) fn full(terminal: Terminal, look: Look) -> Self {
        let pager = Box::new(Pager::new(Printer::new(look, false), terminal.size().columns));
        Self::Full { terminal, full: FullScreen::default(), pager }
    }

    /// As lines. `is_shown`: on a terminal, which has a width. `echoes`: it shows typed text itself.
    pub(crate) fn plain(output: File, look: Look, is_shown: bool, echoes: bool) -> Self {
        Self::Plain { output, printer: Printer::new(look, true), is_shown, echoes }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain { .. })
    }

    /// Whether what was printed is gone once the terminal is as it was.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// The lines of a chat that has no keys.
    pub(super) fn lines(&self) -> Option<Lines> {
        match self {
            Self::Inline { .. } | Self::Full { .. } => None,
            Self::Plain { echoes, .. } => Some(Lines::new(*echoes)),
        }
    }

    fn terminal(&self) -> Option<&Terminal> {
        match self {
            Self::Inline { terminal, .. } | Self::Full { terminal, .. } => Some(terminal),
            Self::Plain { .. } => None,
        }
    }

    fn terminal_mut(&mut self) -> Option<&mut Terminal> {
        match self {
            Self::Inline { terminal, .. } | Self::Full { terminal, .. } => Some(terminal),
            Self::Plain { .. } => None,
        }
    }

    /// # Errors
    /// If the terminal can't be taken.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        match self {
            Self::Inline { terminal, inline, .. } => {
                inline.forget();
                terminal.enter()
            }
            Self::Full { terminal, full, .. } => {
                full.forget();
                terminal.enter()
            }
            Self::Plain { .. } => Ok(()),
        }
    }

    /// Writes what restores the terminal, without the live region but with all printed text. The terminal may take it
    /// later: see [`Self::is_drained`].
    ///
    /// # Errors
    /// If that can't be written where no terminal is.
    pub(super) fn begin_leaving(&mut self, state: &mut State) -> io::Result<()> {
        let (size, now) = (self.size(), Instant::now());
        match self {
            Self::Inline { terminal, inline, printer } => {
                if terminal.is_entered() {
                    let lines = printed(state, printer, size.columns, usize::MAX);
                    let erased = inline.erase(size.columns);
                    let last = inline.picture(&lines, Live::default(), size, false, now);
                    terminal.write(&format!("{erased}{last}")).ok();
                    inline.forget();
                }
                terminal.begin_leaving();
            }
            Self::Full { terminal, .. } => terminal.begin_leaving(),
            Self::Plain { .. } => drop(self.draw(state, now)?),
        }
        Ok(())
    }

    /// Whether the terminal has taken all that was written, or is gone.
    pub(super) fn is_drained(&mut self) -> bool {
        self.terminal_mut().is_none_or(Terminal::is_drained)
    }

    /// Bytes that were written and that the terminal has not taken yet.
    pub(super) fn pending_bytes(&mut self) -> usize {
        self.terminal_mut().map_or(0, |terminal| terminal.pending_bytes())
    }

    /// Restores the terminal. What one does not take that is stuck is dropped.
    pub(super) fn leave(&mut self) {
        if let Some(terminal) = self.terminal_mut() {
            terminal.leave();
        }
    }

    /// Restores the terminal after a panic: only the last picture is removed.
    pub(super) fn abandon(&mut self) {
        match self {
            Self::Inline { terminal, inline, .. } => {
                if terminal.is_entered() {
                    let columns = terminal.size().columns;
                    terminal.write(&inline.erase(columns)).ok();
                    inline.forget();
                }
                terminal.leave();
            }
            Self::Full { terminal, .. } => terminal.leave(),
            Self::Plain { .. } => {}
        }
    }

    pub(super) fn size(&self) -> Size {
        match self {
            Self::Inline { terminal, .. } | Self::Full { terminal, .. } => terminal.size(),
            Self::Plain { output, is_shown, .. } => {
                Size { columns: plain_columns(output, *is_shown), rows: usize::MAX }
            }
        }
    }

    /// The terminal may have another size.
    pub(super) fn resized(&mut self, now: Instant) -> Size {
        match self {
            Self::Inline { terminal, inline, .. } => {
                terminal.trust_size();
                inline.resized(now);
            }
            Self::Full { full, .. } => full.forget(),
            Self::Plain { .. } => {}
        }
        self.size()
    }

    pub(super) fn is_ours(&self) -> bool {
        self.terminal().is_none_or(Terminal::is_ours)
    }

    pub(super) fn takes_pictures(&self) -> bool {
        self.terminal().is_some_and(Terminal::is_entered)
    }

    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
        match self.terminal_mut() {
            Some(terminal) => terminal.read().await,
            None => pending().await,
        }
    }

    /// The terminal for a child process.
    pub(super) fn for_child(&self) -> Option<(File, File)> {
        self.terminal().and_then(|terminal| terminal.for_child().ok())
    }

    /// Writes a sequence that is no part of the picture.
    pub(super) fn send(&mut self, text: &str) {
        if let Some(terminal) = self.terminal_mut() {
            terminal.write(text).ok();
        }
    }

    /// Draws everything again.
    pub(super) fn redraw(&mut self) {
        match self {
            Self::Inline { terminal, inline, .. } => {
                let cleared = inline.clear(terminal.size());
                terminal.write(&cleared).ok();
            }
            Self::Full { full, .. } => full.forget(),
            Self::Plain { .. } => {}
        }
    }

    pub(super) fn scroll(&mut self, scroll: Scroll) {
        if let Self::Full { pager, .. } = self {
            pager.scroll(scroll);
        }
    }

    /// Applies a cursor report. Returns the size of the terminal if it is not the expected one.
    pub(super) fn reported(&mut self, row: usize, column: usize, now: Instant) -> Option<Size> {
        match self {
            Self::Inline { terminal, inline, .. } => {
                let size = inline.reported(row, column, now)?;
                terminal.correct_size(size);
                Some(size)
            }
            Self::Full { .. } | Self::Plain { .. } => None,
        }
    }

    /// Until when the terminal may report something, if it has to.
    pub(super) fn reports_until(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Inline { inline, .. } => inline.answers_until(now),
            Self::Full { .. } | Self::Plain { .. } => None,
        }
    }

    /// The time until which nothing can be drawn: a resize is settling, or a report is pending.
    ///
    /// # Errors
    /// If it is gone.
    pub(super) fn waits(&mut self, state: &State, now: Instant) -> io::Result<Option<Instant>> {
        let Self::Inline { terminal, inline, printer } = self else { return Ok(None) };
        if !terminal.has_room() {
            return Ok(Some(now + ROOM_TIME));
        }
        // After a question, its answer is waited for.
        loop {
            match inline.next(state.size, prints(state), now) {
                Next::Wait(until) => return Ok(Some(until)),
                Next::Picture => return Ok(None),
                Next::Ask(question) => terminal.write(question)?,
                Next::Erase => terminal.write(&inline_erasure(inline, printer, state.size, now))?,
            }
        }
    }

    /// Draws the changes; false if the terminal accepts no bytes now, or not all at once.
    ///
    /// # Errors
    /// If it is gone.
    pub(super) fn draw(&mut self, state: &mut State, now: Instant) -> io::Result<bool> {
        if self.terminal_mut().is_some_and(|terminal| !terminal.has_room()) {
            return Ok(false);
        }
        match self {
            Self::Inline { terminal, inline, printer } => {
                terminal.write(&inline_picture(inline, printer, state, now))?;
                Ok(terminal.is_flushed() && !state.has_finished())
            }
            Self::Full { terminal, full, pager } => {
                terminal.write(&full_picture(full, pager, state))?;
                Ok(terminal.is_flushed())
            }
            Self::Plain { output, printer, .. } => {
                let mut text = String::new();
                for piece in state.take_finished() {
                    for line in printer.lines(&piece, state.size.columns, state.unfolded.all) {
                        let chars = line.spans.iter().flat_map(|span| span.content.chars());
                        text.extend(chars.filter(|char| is_sent(*char)));
                        text.push('\n');
                    }
                }
                write_all(&*output, text.as_bytes())?;
                Ok(true)
            }
        }
    }

    /// Whether a picture of `state` shows all of the open question. On the full screen, which has nothing above it, the
    /// calls that it is about must be there, too. Plain lines have `Lines::question_is_shown`.
    pub(super) fn shows_question(&self, state: &State) -> bool {
        match self {
            Self::Inline { printer, .. } => shows_question(state, printer),
            Self::Full { pager, .. } => {
                let call = state.asked_call();
                let is_call = |piece: &Piece| matches!(piece, Piece::Note(_, text) if call.as_ref() == Some(text));
                pager.shows_from(is_call) && shows_question(state, pager.printer())
            }
            Self::Plain { .. } => false,
        }
    }

    /// Writes the last lines, once the terminal is as it was. It may take them later.
    pub(super) fn farewell(&mut self, lines: &[String]) {
        let mut text = String::new();
        for line in lines {
            text.push_str(&crate::support::terminal::escape_control(line));
            text.push('\n');
        }
        match self {
            Self::Inline { terminal, .. } | Self::Full { terminal, .. } => {
                terminal.write(&text).ok();
            }
            Self::Plain { .. } => crate::support::stderr::message(&text),
        }
    }

    /// Nothing more is written. What a terminal does not take that is stuck is dropped.
    pub(super) fn finish(&mut self) {
        if let Some(terminal) = self.terminal_mut() {
            terminal.finish();
        }
    }
}

/// Whether frames redraw the picture without a key press.
pub(super) fn is_moving(state: &State) -> bool {
    state.run.is_some() || !state.waiting.is_empty() || state.command.is_some()
}

/// Whether the next picture may print something, or comes by itself: then the size is asked for before it.
fn prints(state: &State) -> bool {
    is_moving(state) || state.has_finished()
}

/// The part of the rows, one in so many, that is printed at once while pictures come by themselves. A picture that
/// meets a new size on its way leaves rows of the picture before it above itself, and they must stay on the
/// screen to be erased.
const PRINTED_PART: usize = 3;

/// The bytes that erase the chat under the scrollback, before it is redrawn.
pub(crate) fn inline_erasure(
    inline: &mut Inline,
    printer: &mut Printer,
    size: Size,
    now: Instant,
) -> String {
    leave_pushed_up(inline, printer, size.columns);
    inline.erasure(size, printer.open_lines(), now)
}

/// Lines of an open block that the terminal has pushed above its screen count as printed.
fn leave_pushed_up(inline: &mut Inline, printer: &mut Printer, columns: usize) {
    let above = inline.above(columns);
    if above.lines > 0 {
        inline.leave_lines(printer.pushed_up(above));
    }
}

/// The bytes that draw the chat under the scrollback.
pub(crate) fn inline_picture(
    inline: &mut Inline,
    printer: &mut Printer,
    state: &mut State,
    now: Instant,
) -> String {
    let Size { columns, rows } = state.size;
    leave_pushed_up(inline, printer, columns);
    let prints = prints(state);
    let is_bounded = is_moving(state) && inline.has_answers();
    let lines_max = if is_bounded { (rows / PRINTED_PART).max(1) } else { usize::MAX };
    let mut lines = printed(state, printer, columns, lines_max);
    let live = under_scrollback(state, printer, &mut lines, lines_max);
    inline.picture(&lines, live, state.size, prints, now)
}

/// The bytes that draw the chat on the whole screen.
pub(crate) fn full_picture(full: &mut FullScreen, pager: &mut Pager, state: &mut State) -> String {
    pager.lay_out(state.size.columns, state.unfolded.all);
    state.take_finished().into_iter().for_each(|piece| pager.push(piece));
    let Live { lines, row, column } = page(state, pager);
    full.picture(lines, (row, column), state.size)
}

/// The lines of what was not printed yet: no further piece is printed after so many lines.
fn printed(
    state: &mut State,
    printer: &mut Printer,
    columns: usize,
    lines_max: usize,
) -> Vec<Line> {
    let is_unfolded = state.unfolded.all;
    let mut pieces = state.take_finished().into_iter();
    let mut lines = Vec::new();
    while lines.len() < lines_max
        && let Some(piece) = pieces.next()
    {
        lines.extend(printer.lines(&piece, columns, is_unfolded));
    }
    state.put_back(pieces.collect());
    lines
}

/// Columns of plain lines on a terminal, or elsewhere.
fn plain_columns(output: &File, is_terminal: bool) -> usize {
    const ELSEWHERE: usize = 80;
    if is_terminal { terminal::size(output).columns } else { ELSEWHERE }
}

#[cfg(test)]
mod tests;
