//! A chat without a terminal: its model and its drawing alone, for measurements.

use super::display::{FullScreen, Inline};
use super::input::History;
use super::markdown::{Colours, Theme, Tone};
use super::model::{Event, Size, State};
use super::shell::{full_picture, inline_picture};
use super::terminal::keys::{Key, Press, Typed};
use super::view::{Look, Pager, Printer};
use crate::protocol::any::Any;
use crate::protocol::id::{RequestId, SessionId};
use crate::protocol::proto::chat::{
    ChatRunStarted, ChatTextPatch, ChatTextSegmentFinished, ChatTextSegmentStarted,
};
use crate::protocol::proto::rpc::UiEventFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire;
use std::time::{Duration, Instant};

const THEME: Theme = Theme { tone: Tone::Dark, colours: Colours::True, has_links: false };

/// A chat that answers one prompt, and what it would write to a terminal. Expect it to change.
#[derive(Debug)]
pub struct DetachedChat {
    state: State,
    drawing: Drawing,
    session: SessionId,
    request: Option<RequestId>,
    ordinal: u64,
    started: Instant,
}

#[derive(Debug)]
enum Drawing {
    Inline(Box<Inline>, Printer),
    Full(FullScreen, Box<Pager>),
}

impl DetachedChat {
    /// A chat on a screen of this size in which an answer has begun, under the scrollback or on the whole
    /// screen. `None` if the ids are none, which can't be.
    #[must_use]
    pub fn answering(columns: usize, rows: usize, is_fullscreen: bool) -> Option<Self> {
        let look = Look::new(THEME);
        let drawing = match is_fullscreen {
            true => {
                let pager = Box::new(Pager::new(Printer::new(look, false), columns));
                Drawing::Full(FullScreen::default(), pager)
            }
            false => Drawing::Inline(Box::new(Inline::new(true)), Printer::new(look, true)),
        };
        let mut chat = Self {
            state: State::new(Size { columns, rows }, History::default()),
            drawing,
            session: SessionId::new("session")?,
            request: RequestId::new("request"),
            ordinal: 0,
            started: Instant::now(),
        };
        chat.takes(ChatRunStarted::default());
        chat.takes(ChatTextSegmentStarted::default());
        Some(chat)
    }

    /// A piece of the answer arrives; nothing is drawn.
    pub fn text(&mut self, text: &str) {
        self.takes(ChatTextPatch { text: text.to_owned(), ..ChatTextPatch::default() });
    }

    /// The answer ends, and another one begins.
    pub fn next_answer(&mut self) {
        self.takes(ChatTextSegmentFinished::default());
        self.takes(ChatTextSegmentStarted::default());
    }

    /// The person types a character, or erases one.
    pub fn key(&mut self, char: Option<char>) {
        let key = char.map_or(Key::Backspace, Key::Char);
        self.update(Event::Typed(Typed::Press(Press::plain(key))));
    }

    /// What is written to the terminal now.
    pub fn picture(&mut self) -> String {
        let now = self.started;
        match &mut self.drawing {
            Drawing::Inline(inline, printer) => {
                inline_picture(inline, printer, &mut self.state, now)
            }
            Drawing::Full(full, pager) => full_picture(full, pager, &mut self.state),
        }
    }

    fn takes(&mut self, payload: impl Into<Any>) {
        let payload = payload.into();
        self.ordinal += 1;
        let name = payload.name().to_owned();
        let event = UiEventFrame { ordinal: self.ordinal, name, payload: Some(payload) };
        let frame = wire::frame(&self.session, self.request.as_ref(), Body::UiEvent(event));
        self.update(Event::Frame(Box::new(frame)));
    }

    fn update(&mut self, event: Event) {
        // What is to be done besides drawing is the shell's.
        drop(self.state.update(Duration::ZERO, event));
    }
}
