//! The blocks of a piece of source, from the events of the parser, with what the stream must know to
//! decide which of them are closed.

use super::super::text::clean;
use super::code::{Highlighter, caption};
use super::inline::InlineReader;
use super::{Align, Block, CodePlace, Face, Inline, Kind, Marker, Marks, Table};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, OffsetIter, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Quotes and lists inside one another that are drawn as such; deeper ones are drawn as their content.
const NESTING_MAX: usize = 12;

/// The context before the source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub(super) after: After,
    /// Whether an empty line separates the two.
    pub(super) blank: bool,
    /// The number of the first item, if the source continues a numbered list.
    pub(super) number: Option<u64>,
}

/// What the last block was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum After {
    #[default]
    Nothing,
    Item,
    Other,
    /// A block that was cut because of its length; the source continues it.
    Cut,
}

/// A block of the document itself.
#[derive(Debug)]
pub(super) struct Top {
    /// Where its first line starts.
    pub(super) start: usize,
    pub(super) shape: Shape,
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// Each item is one block. `starts` are those of their lines, `last` is the number of the last.
    List {
        starts: Vec<usize>,
        last: Option<u64>,
    },
    Table {
        rows: Vec<usize>,
    },
    Fenced,
    Other,
}

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The code of each block that is drawn as code, without its fences and its indentation.
pub(crate) fn code_blocks(source: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut is_inside = false;
    for event in Parser::new_ext(source, OPTIONS) {
        if let Event::Start(Tag::CodeBlock(_)) = event {
            is_inside = true;
            blocks.push(String::new());
        } else if let Event::End(TagEnd::CodeBlock) = event {
            is_inside = false;
        } else if let Event::Text(text) = event
            && let Some(block) = blocks.last_mut().filter(|_| is_inside)
        {
            block.push_str(&text);
        }
    }
    blocks
}

pub(super) fn read(source: &str, before: Before) -> Vec<Top> {
    let events = Parser::new_ext(source, OPTIONS).into_offset_iter();
    let definitions = events.reference_definitions().iter();
    let mut definitions: Vec<_> = definitions.map(|(_, it)| it.span.clone()).collect();
    definitions.sort_by_key(|span| span.start);
    BlockReader { source, before, events, definitions, task: None }.document()
}

struct BlockReader<'a> {
    source: &'a str,
    before: Before,
    events: OffsetIter<'a>,
    /// Where links are defined, in order.
    definitions: Vec<Range<usize>>,
    /// Whether the item that is read is a task.
    task: Option<bool>,
}

impl<'a> BlockReader<'a> {
    fn document(mut self) -> Vec<Top> {
        let mut tops = Vec::new();
        let mut after = self.before.after;
        let mut end = 0;
        while let Some((event, range)) = self.next() {
            self.between(end..range.start, &mut after, &mut tops);
            let start = self.line_start(range.start);
            let mut blocks = Vec::new();
            let number = self.before.number.filter(|_| tops.is_empty());
            let place = Place { after, tight: false, quoted: false, depth: 0, number };
            let shape = self.block(event, &range, &place, &mut blocks);
            after = blocks.last().map_or(after, After::block);
            end = range.end.max(end);
            tops.push(Top { start, shape, blocks });
        }
        self.between(end..self.source.len(), &mut after, &mut tops);
        tops
    }

    fn next(&mut self) -> Option<(Event<'a>, Range<usize>)> {
        let (event, range) = self.events.next()?;
        if let Event::TaskListMarker(done) = event {
            self.task = Some(done);
            return self.events.next();
        }
        Some((event, range))
    }

    /// What is written between two blocks. That is definitions of links, for which the parser has no
    /// event; they may hold what the person wants to see.
    fn between(&self, range: Range<usize>, after: &mut After, tops: &mut Vec<Top>) {
        let Some(text) = self.source.get(range.clone()).filter(|it| !it.trim().is_empty()) else {
            return;
        };
        let start = self.line_start(range.start + text.len() - text.trim_start().len());
        let kind = self.written(range);
        let gap = gap(*after, &kind, true, false);
        *after = After::Other;
        tops.push(Top { start, shape: Shape::Other, blocks: vec![Block { gap, kind }] });
    }

    fn written(&self, range: Range<usize>) -> Kind {
        Kind::Source(clean(self.source.get(range).unwrap_or_default().trim()))
    }

    /// The blocks of a container that is at `range`, and the definitions in it.
    fn container(&mut self, place: &Place, range: &Range<usize>) -> Vec<Block> {
        let mut blocks = self.content(place);
        if place.depth == 1 {
            let inside = |it: &&Range<usize>| range.start <= it.start && it.end <= range.end;
            let inside = self.definitions.iter().filter(inside).map(|it| self.written(it.clone()));
            blocks.extend(inside.map(|kind| Block { gap: true, kind }));
        }
        blocks
    }

    /// The blocks of a container, up to its end.
    fn content(&mut self, place: &Place) -> Vec<Block> {
        let mut blocks = Vec::new();
        // Items of lists without empty lines have text outside any paragraph.
        let mut loose = InlineReader::default();
        let mut loose_start = 0;
        let mut ignored = 0;
        while let Some((event, range)) = self.next() {
            if loose.is_empty() {
                loose_start = range.start;
            }
            let is_escaped = self.is_escaped(range.start);
            let Some(event) = loose.read(event, is_escaped) else { continue };
            self.put(Kind::Paragraph(loose.take()), loose_start, place, &mut blocks);
            if let Event::End(_) = event {
                if ignored == 0 {
                    return blocks;
                }
                ignored -= 1;
            } else if place.depth >= NESTING_MAX && is_container(&event) {
                ignored += 1;
            } else {
                self.block(event, &range, place, &mut blocks);
            }
        }
        blocks
    }

    /// Reads the block that begins with `event`.
    fn block(
        &mut self,
        event: Event<'a>,
        range: &Range<usize>,
        place: &Place,
        blocks: &mut Vec<Block>,
    ) -> Shape {
        let kind = if let Event::Rule = event {
            Kind::Rule
        } else if let Event::Html(html) = &event {
            Kind::Source(clean(html))
        } else if let Event::Start(tag) = event {
            if let Tag::List(first) = tag {
                return self.list(first, place, blocks);
            } else if let Tag::CodeBlock(kind) = tag {
                return self.code(&kind, range, place, blocks);
            } else if let Tag::Table(columns) = tag {
                let (table, rows) = self.table(&columns);
                self.put(Kind::Table(table), range.start, place, blocks);
                return Shape::Table { rows };
            } else if let Tag::Heading { level, .. } = tag {
                Kind::Heading { level: level as u8, text: self.text() }
            } else if let Tag::HtmlBlock = tag {
                Kind::Source(clean(self.raw().trim_end()))
            } else if let Tag::BlockQuote(_) = tag {
                Kind::Quote(self.container(&place.inner(false), range))
            } else {
                Kind::Paragraph(self.text())
            }
        } else {
            return Shape::Other;
        };
        self.put(kind, range.start, place, blocks);
        Shape::Other
    }

    fn list(&mut self, first: Option<u64>, place: &Place, blocks: &mut Vec<Block>) -> Shape {
        let mut number = first.map(|first| place.number.unwrap_or(first));
        let mut starts = Vec::new();
        while let Some((Event::Start(_), range)) = self.next() {
            let outer = self.task.take();
            let content = self.container(&place.inner(true), &range);
            let task = std::mem::replace(&mut self.task, outer);
            starts.push(self.line_start(range.start));
            let item = item(number, task, content);
            self.put(item, range.start, place, blocks);
            number = number.map(|number| number.saturating_add(1));
        }
        Shape::List { starts, last: number.map(|next| next.saturating_sub(1)) }
    }

    fn code(
        &mut self,
        kind: &CodeBlockKind<'_>,
        range: &Range<usize>,
        place: &Place,
        blocks: &mut Vec<Block>,
    ) -> Shape {
        let (info, shape) = match kind {
            CodeBlockKind::Indented => ("", Shape::Other),
            CodeBlockKind::Fenced(info) => (info.as_ref(), Shape::Fenced),
        };
        let text = self.raw();
        if text.is_empty() {
            return shape;
        }
        let lines = Highlighter::new(info).lines(text.strip_suffix('\n').unwrap_or(&text));
        let mut at = CodePlace::First;
        let lines = lines.into_iter().map(|spans| Kind::CodeLine {
            place: std::mem::replace(&mut at, CodePlace::Later),
            spans,
        });
        let mut kinds = caption(info).into_iter().chain(lines);
        if let Some(first) = kinds.next() {
            self.put(first, range.start, place, blocks);
        }
        blocks.extend(kinds.map(|kind| Block { gap: false, kind }));
        shape
    }

    /// A table, and where the lines of its rows start.
    fn table(&mut self, columns: &[Alignment]) -> (Table, Vec<usize>) {
        let columns: Vec<_> = columns.iter().map(|it| align(*it)).collect();
        let (mut lines, mut starts, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((event, range)) = self.next() {
            if let Event::Start(Tag::TableCell) = event {
                cells.push(self.text());
            } else if let Event::Start(_) = event {
                starts.push(range.start);
            } else if cells.is_empty() {
                break;
            } else {
                lines.push(std::mem::take(&mut cells));
            }
        }
        let starts = starts.into_iter().skip(1).map(|start| self.line_start(start)).collect();
        let mut lines = lines.into_iter();
        let head = lines.next().unwrap_or_default();
        (Table { columns, head, rows: lines.collect() }, starts)
    }

    /// The text up to the end of a block that holds nothing else.
    fn text(&mut self) -> Vec<Inline> {
        let mut reader = InlineReader::default();
        while let Some((event, range)) = self.next() {
            let is_escaped = self.is_escaped(range.start);
            if let Some(Event::End(_)) = reader.read(event, is_escaped) {
                break;
            }
        }
        reader.take()
    }

    /// The text up to the end of a block of code or HTML, as it is written.
    fn raw(&mut self) -> String {
        let mut text = String::new();
        while let Some((Event::Text(piece) | Event::Html(piece), _)) = self.next() {
            text.push_str(&piece);
        }
        text
    }

    fn put(&self, kind: Kind, start: usize, place: &Place, blocks: &mut Vec<Block>) {
        if matches!(&kind, Kind::Paragraph(text) if text.is_empty()) {
            return;
        }
        let after = blocks.last().map_or(place.after, After::block);
        let gap = gap(after, &kind, self.blank_before(start, place.quoted), place.tight);
        blocks.push(Block { gap, kind });
    }

    /// Whether a backslash before the character at `at` is no character of its own.
    fn is_escaped(&self, at: usize) -> bool {
        let before = self.source.as_bytes().get(..at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
    }

    fn line_start(&self, at: usize) -> usize {
        self.source.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |at| at + 1)
    }

    /// Whether the line before that of `at` is empty, but for the marks of a quote.
    fn blank_before(&self, at: usize, quoted: bool) -> bool {
        let start = self.line_start(at);
        let before = self.source.get(..start.saturating_sub(1)).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_empty = |it: char| it == ' ' || it == '\t' || (quoted && it == '>');
        if start == 0 { self.before.blank } else { line.chars().all(is_empty) }
    }
}

/// Where a block stands.
struct Place {
    after: After,
    /// In an item, an empty line is drawn where there is one.
    tight: bool,
    /// In a quote, a line with nothing but its mark is empty.
    quoted: bool,
    depth: usize,
    /// The number of the first item of a list that continues here.
    number: Option<u64>,
}

impl Place {
    /// What is inside a container that stands here.
    fn inner(&self, tight: bool) -> Place {
        let quoted = self.quoted || !tight;
        Place { after: After::Nothing, tight, quoted, depth: self.depth + 1, number: None }
    }
}

impl After {
    pub(super) fn block(block: &Block) -> After {
        if matches!(block.kind, Kind::Item { .. }) { After::Item } else { After::Other }
    }
}

/// Whether an empty line is drawn before a block of `kind`.
fn gap(after: After, kind: &Kind, blank: bool, tight: bool) -> bool {
    match after {
        After::Nothing | After::Cut => false,
        After::Item if matches!(kind, Kind::Item { .. }) => blank,
        After::Item | After::Other => blank || !tight,
    }
}

fn is_container(event: &Event<'_>) -> bool {
    matches!(event, Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item))
}

fn item(number: Option<u64>, task: Option<bool>, mut content: Vec<Block>) -> Kind {
    let marker = match (number, task) {
        (None, None) => Marker::Bullet,
        (None, Some(done)) => Marker::Task(done),
        (Some(number), None) => Marker::Number(number),
        (Some(number), Some(done)) => {
            let mark = if done { "[x] " } else { "[ ] " };
            let mark = Inline {
                text: mark.into(),
                face: Face::Text,
                marks: Marks::default(),
                target: None,
            };
            if let Some(Block { kind: Kind::Paragraph(rest), .. }) = content.first_mut() {
                rest.insert(0, mark);
            }
            Marker::Number(number)
        }
    };
    Kind::Item { marker, content }
}

fn align(alignment: Alignment) -> Align {
    match alignment {
        Alignment::None | Alignment::Left => Align::Left,
        Alignment::Center => Align::Centre,
        Alignment::Right => Align::Right,
    }
}
