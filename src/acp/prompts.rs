//! Prompts: the content blocks of a client become a text with attachments. Pure but for [`Draft::submit`],
//! which looks at the files that links name, and for URIs with `#` or `?`, which may be parts of a file's name.

use super::jsonrpc::RpcError;
use super::schema::{ContentBlock, EmbeddedResource};
use crate::protocol::attachment::{
    ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX, Attachment, Content, IMAGE, PROMPT_BYTES_MAX,
};
use crate::protocol::command::{Prompt, Submit};
use crate::protocol::proto::chat::ChatAttachment;
use crate::support::shell_words;
use crate::support::terminal::escape_control;
use data_encoding::BASE64;
use std::fs::{File, Metadata};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use url::Url;

/// Endings of files that no editor has as text.
const BINARY_ENDINGS: [&str; 12] =
    ["png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "pdf", "zip", "gz", "mp3", "mp4"];

/// A prompt before its links have been followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) text: String,
    attachments: Vec<Attachment>,
    pub(super) links: Vec<Link>,
    /// Where the first line names files, before it is known whether they are words of a command.
    mentions: Vec<Mention>,
}

/// A place of the text that names a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    at: Range<usize>,
    path: PathBuf,
    source: Source,
}

/// Where the content of a file that is named comes from, unless the file is a word of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The file, or the client's buffer of it.
    Link,
    /// The prompt: the attachment at this place is the whole file.
    Attachment(usize),
    /// The prompt, which has a part of the file, or nothing as the file is empty. The word of a command does not say
    /// which part, so that is sent in any case.
    Part,
}

/// A file that the prompt names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) path: PathBuf,
    /// Its text as the client's buffer has it.
    pub(super) buffer: Option<String>,
}

/// A prompt whose links have been followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ready {
    pub(super) submit: Submit,
    /// Notices for the person.
    pub(super) notices: Vec<String>,
}

/// The prompt in `blocks`.
///
/// # Errors
/// If there is nothing in it, or a block can't be used.
pub(super) fn draft(blocks: Vec<ContentBlock>) -> Result<Draft, RpcError> {
    let mut draft = Draft::default();
    let mut was_text = false;
    for block in blocks {
        let is_text = matches!(block, ContentBlock::Text { .. });
        if was_text && is_text && !draft.text.ends_with('\n') {
            draft.text.push('\n');
        }
        was_text = is_text;
        draft.add(block)?;
    }
    if draft.text.trim().is_empty() && draft.attachments.is_empty() {
        return Err(RpcError::invalid_params("the prompt is blank, so there is nothing to answer"));
    }
    Ok(draft)
}

impl Draft {
    fn add(&mut self, block: ContentBlock) -> Result<(), RpcError> {
        match block {
            ContentBlock::Text { text } => self.text.push_str(&text),
            ContentBlock::Image { data, uri, .. } => {
                let (data, filename) = (decoded(&data)?, last_part(&uri.unwrap_or_default()));
                self.attach(data, IMAGE, filename);
            }
            ContentBlock::Audio { .. } => {
                return Err(RpcError::invalid_params(
                    "the prompt has audio, which is not sent to models; send it as text",
                ));
            }
            ContentBlock::ResourceLink { uri, name } => {
                let (start, is_first_line) = (self.text.len(), !self.text.contains('\n'));
                self.mention(&uri, &name);
                match path_of(&uri) {
                    Some(path) if is_first_line => {
                        let (at, source) = (start..self.text.len(), Source::Link);
                        self.mentions.push(Mention { at, path, source });
                    }
                    Some(path) => self.link(path),
                    None => {}
                }
            }
            ContentBlock::Resource { resource } => self.embed(resource)?,
        }
        Ok(())
    }

    fn link(&mut self, path: PathBuf) {
        if self.links.iter().all(|link| link.path != path) {
            self.links.push(Link { path, buffer: None });
        }
    }

    /// Decides what the files are that the first line names, now that `is_command` knows the commands: of a
    /// command they are words, and of any other prompt links or attachments.
    pub(super) fn settle(&mut self, is_command: impl Fn(&str) -> bool) {
        let mentions = std::mem::take(&mut self.mentions);
        if self.command(is_command).is_some() {
            // From the end, so that the places before it stay where they are.
            for Mention { at, path, source } in mentions.into_iter().rev() {
                let word = shell_words::joined([&*path.to_string_lossy()]);
                self.text.replace_range(at, &word.unwrap_or_default());
                if let Source::Attachment(at) = source {
                    self.attachments.remove(at);
                }
            }
            return;
        }
        let later = std::mem::take(&mut self.links);
        let mentioned = mentions.into_iter().filter(|it| it.source == Source::Link);
        let paths = mentioned.map(|it| it.path).chain(later.into_iter().map(|it| it.path));
        paths.for_each(|path| self.link(path));
    }

    fn embed(&mut self, resource: EmbeddedResource) -> Result<(), RpcError> {
        let EmbeddedResource { uri, text, blob, .. } = resource;
        let (start, is_first_line) = (self.text.len(), !self.text.contains('\n'));
        self.mention(&uri, "");
        let at = start..self.text.len();
        let data = match (text, blob) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(blob)) => decoded(&blob)?,
            (None, None) => Vec::new(),
        };
        let source = match data.is_empty() || uri.contains(['#', '?']) {
            true => Source::Part,
            false => Source::Attachment(self.attachments.len()),
        };
        if !data.is_empty() {
            self.attach(data, "", last_part(&uri));
        }
        if let Some(path) = path_of(&uri).filter(|_| is_first_line) {
            self.mentions.push(Mention { at, path, source });
        }
        Ok(())
    }

    /// Bytes that it holds in memory.
    pub(super) fn len_bytes(&self) -> usize {
        let attached =
            self.attachments.iter().map(|it| usize::try_from(it.len_bytes()).unwrap_or(usize::MAX));
        self.text.len() + attached.sum::<usize>()
    }

    /// Where a file stands in the text.
    fn mention(&mut self, uri: &str, name: &str) {
        let name = if name.trim().is_empty() { last_part(uri) } else { name.to_owned() };
        self.text.push_str(&match (name.is_empty(), uri.is_empty()) {
            (true, true) => String::new(),
            (true, false) => uri.to_owned(),
            (false, true) => format!("@{name}"),
            (false, false) => format!("[@{name}]({uri})"),
        });
    }

    fn attach(&mut self, data: Vec<u8>, kind: &str, filename: String) {
        let (kind, size_bytes) = (kind.to_owned(), data.len() as u64);
        let shown = ChatAttachment { kind, filename, size_bytes, ..ChatAttachment::default() };
        self.attachments.push(Attachment { shown, content: Content::Data(data.into()) });
    }

    /// The line of the command `name` that the prompt begins with, if `is_command` knows it, and what
    /// follows the line.
    pub(super) fn command(&self, is_command: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
        let (line, rest) = self.text.split_once('\n').unwrap_or((&self.text, ""));
        let line = line.trim().strip_prefix('/')?;
        is_command(line.split_whitespace().next()?).then_some((line, rest))
    }

    /// The links whose text the client may have.
    pub(super) fn text_links(&self) -> impl Iterator<Item = (usize, &Link)> {
        let is_binary = |path: &Path| {
            let ending = path.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
            ending.is_some_and(|ending| BINARY_ENDINGS.contains(&ending.as_str()))
        };
        self.links.iter().enumerate().filter(move |(_, link)| !is_binary(&link.path))
    }

    /// The submit with `text`. Looks at the files: one that is empty, too long, or no regular file, as a folder, is
    /// only named.
    ///
    /// # Errors
    /// If there is nothing to answer.
    pub(super) fn submit(mut self, text: String) -> Result<Ready, RpcError> {
        let mut notices = Vec::new();
        let mut bytes: u64 = self.attachments.iter().map(Attachment::len_bytes).sum();
        for Link { path, buffer } in std::mem::take(&mut self.links) {
            let len_bytes = match &buffer {
                Some(text) => Some(text.len() as u64).filter(|len| *len > 0),
                None => len_bytes(&path),
            };
            let Some(len_bytes) = len_bytes else { continue };
            if let Some(why) = no_room(self.attachments.len(), bytes, len_bytes) {
                let path = path.to_string_lossy();
                let text = format!("{path} is only named to the model, and not sent: {why}");
                notices.push(escape_control(&text));
                continue;
            }
            bytes += len_bytes;
            let filename = path.file_name().map(|it| it.to_string_lossy().into_owned());
            match buffer {
                Some(text) => self.attach(text.into_bytes(), "", filename.unwrap_or_default()),
                None => self.attach_file(path),
            }
        }
        let mut attachments = self.attachments;
        for (number, attachment) in (1..).zip(&mut attachments) {
            attachment.shown.attachment_id = format!("attachment-{number}");
        }
        let nothing = || (!attachments.is_empty()).then(Prompt::nothing);
        let prompt = Prompt::new(text).or_else(nothing);
        let prompt = prompt.ok_or_else(|| RpcError::invalid_params("the prompt is blank"))?;
        Ok(Ready { submit: Submit { attachments, ..Submit::new(prompt) }, notices })
    }

    fn attach_file(&mut self, path: PathBuf) {
        let (shown, content) = (ChatAttachment::default(), Content::File(path));
        self.attachments.push(Attachment { shown, content });
    }
}

/// The size of the regular file at `path`; `None` if there is nothing to read in it. Of some, as those of `/proc`,
/// only a read says so, and their size is 0.
fn len_bytes(path: &Path) -> Option<u64> {
    let about = path.metadata().ok().filter(Metadata::is_file)?;
    let is_read = |mut file: File| file.read(&mut [0]).is_ok_and(|count| count > 0);
    (about.len() > 0 || File::open(path).is_ok_and(is_read)).then_some(about.len())
}

/// Why a file of so many bytes can't go with a prompt that has `count` attachments already, and `bytes` in them.
fn no_room(count: usize, bytes: u64, len_bytes: u64) -> Option<String> {
    const MEBIBYTE: u64 = 1024 * 1024;
    let (one, all) = (ATTACHMENT_BYTES_MAX / MEBIBYTE, PROMPT_BYTES_MAX / MEBIBYTE);
    if count >= ATTACHMENTS_MAX {
        Some(format!("a prompt can have {ATTACHMENTS_MAX} files"))
    } else if len_bytes > ATTACHMENT_BYTES_MAX {
        Some(format!("it has {len_bytes} bytes, and {one} MiB is the limit"))
    } else if bytes.saturating_add(len_bytes) > PROMPT_BYTES_MAX {
        Some(format!("with it the files of the prompt would have more than {all} MiB"))
    } else {
        None
    }
}

fn decoded(data: &str) -> Result<Vec<u8>, RpcError> {
    let plain: String = data.chars().filter(|c| !c.is_whitespace()).collect();
    let decoded = BASE64.decode(plain.as_bytes());
    decoded.map_err(|error| {
        RpcError::invalid_params(format!("a part of the prompt is no base64: {error}"))
    })
}

/// The path of a file on this machine.
fn path_of(uri: &str) -> Option<PathBuf> {
    if uri.starts_with('/') {
        return Some(PathBuf::from(uri));
    }
    let path =
        |uri: &str| Url::parse(uri).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok();
    // Not every editor encodes them in the name of a file; of most URIs they begin a part, as `#L1-2`.
    let encoded = uri.replace('#', "%23").replace('?', "%3F");
    let whole = path(&encoded).filter(|whole| encoded != uri && whole.is_file());
    whole.or_else(|| path(uri))
}

/// The last part of the path in `uri`.
fn last_part(uri: &str) -> String {
    if let Some(path) = path_of(uri) {
        let last = path.file_name().unwrap_or_default();
        return last.to_string_lossy().into_owned();
    }
    let url = Url::parse(uri).ok();
    let last = url.as_ref().and_then(|url| url.path_segments()?.next_back());
    last.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::test_folder::TestFolder;
    use serde_json::{Value, json};

    fn of(blocks: Value) -> Result<Draft, RpcError> {
        draft(serde_json::from_value(blocks).expect("blocks"))
    }

    fn paths(draft: &Draft) -> Vec<&str> {
        draft.links.iter().map(|link| link.path.to_str().expect("UTF-8")).collect()
    }

    #[test]
    fn texts_and_links_become_one_text_in_their_order() {
        let draft = of(json!([
            { "type": "text", "text": "Compare " },
            { "type": "resource_link", "uri": "file:///p/a%20b.rs", "name": "a b.rs" },
            { "type": "text", "text": " with " },
            { "type": "resource", "resource": { "uri": "file:///p/c.rs", "text": "fn c() {}" } },
            { "type": "text", "text": "." },
            { "type": "text", "text": "And then?" },
            { "type": "resource_link", "uri": "https://h/x?y", "name": "" },
        ]));
        let mut draft = draft.expect("a prompt");
        draft.settle(|_| true);
        assert_eq!(
            draft.text,
            "Compare [@a b.rs](file:///p/a%20b.rs) with [@c.rs](file:///p/c.rs).\nAnd \
             then?[@x](https://h/x?y)"
        );
        assert_eq!(paths(&draft), ["/p/a b.rs"]);
        let submit = draft.clone().submit(draft.text).expect("a submit").submit;
        // The link leads nowhere, and is only named.
        let [only] = &submit.attachments[..] else { panic!("{submit:?}") };
        assert_eq!(only.content, Content::Data((*b"fn c() {}").into()));
        assert_eq!(only.shown.filename, "c.rs");
    }

    #[test]
    fn an_image_alone_is_a_prompt_and_nothing_is_none() {
        let image = json!({ "type": "image", "data": "AAEC\n", "mimeType": "image/png", "uri": "file:///x/i.png" });
        let draft = of(json!([image])).expect("a prompt");
        let submit = draft.submit(String::new()).expect("a submit").submit;
        assert_eq!(submit.attachments[0].content, Content::Data([0, 1, 2].into()));
        assert_eq!(
            (
                submit.attachments[0].shown.kind.as_str(),
                submit.attachments[0].shown.filename.as_str()
            ),
            (IMAGE, "i.png")
        );
        for nothing in [
            json!([]),
            json!([{ "type": "text", "text": " \n" }]),
            json!([{ "type": "image", "data": "?", "mimeType": "image/png" }]),
            json!([{ "type": "audio", "data": "AAEC", "mimeType": "audio/wav" }]),
        ] {
            assert!(of(nothing.clone()).is_err(), "{nothing}");
        }
    }

    #[test]
    fn a_file_that_comes_with_the_prompt_is_a_word_of_a_command_too() {
        let file = |uri: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "text": text } });
        let image =
            json!({ "type": "image", "data": "AAEC", "mimeType": "image/png", "uri": "i.png" });
        let mut draft = of(json!([
            image,
            { "type": "text", "text": "/sum --n 3 " },
            file("file:///p/a%20b.txt", "one"),
            { "type": "text", "text": " " },
            file("file:///p/part.txt#L2-3", "two"),
            { "type": "text", "text": " " },
            file("file:///p/empty.txt", ""),
            { "type": "text", "text": "\nAs in " },
            file("file:///p/d.txt", "three"),
        ]))
        .expect("a prompt");
        let contents = |draft: &Draft| {
            let submit = draft.clone().submit(draft.text.clone()).expect("a submit").submit;
            let content = |it: &Attachment| {
                let Content::Data(data) = &it.content else { panic!("{it:?}") };
                String::from_utf8_lossy(data).into_owned()
            };
            let ids = submit.attachments.iter().map(|it| it.shown.attachment_id.clone());
            let expected = (1..=submit.attachments.len()).map(|it| format!("attachment-{it}"));
            assert_eq!(ids.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            submit.attachments.iter().map(content).collect::<Vec<_>>()
        };
        let mut unknown = draft.clone();
        let is_sum = |name: &str| name == "sum";
        draft.settle(is_sum);
        let words = "sum --n 3 '/p/a b.txt' /p/part.txt /p/empty.txt";
        let rest = "As in [@d.txt](file:///p/d.txt)";
        assert_eq!(draft.command(is_sum), Some((words, rest)));
        // Which part of a file is meant is said by nothing else.
        assert_eq!(contents(&draft), ["\0\u{1}\u{2}", "two", "three"]);
        unknown.settle(|_| false);
        assert!(unknown.text.starts_with("/sum --n 3 [@a b.txt](file:///p/a%20b.txt) "));
        assert_eq!(contents(&unknown), ["\0\u{1}\u{2}", "one", "two", "three"]);
        assert_eq!(paths(&unknown), [""; 0]);
    }

    #[test]
    fn a_file_is_sent_if_there_is_something_in_it() {
        let folder = TestFolder::new();
        std::fs::write(folder.path("__init__.py"), "").expect("a file");
        let link = |path: &Path| json!({ "type": "resource_link", "uri": path, "name": "it" });
        let attached = |path: &Path| {
            let mut draft = of(json!([link(path)])).expect("a prompt");
            draft.settle(|_| false);
            let text = draft.text.clone();
            let Ready { submit, notices } = draft.submit(text).expect("a submit");
            (submit.attachments.len(), notices.len())
        };
        assert_eq!(attached(&folder.path("__init__.py")), (0, 0));
        std::fs::write(folder.path("__init__.py"), "x").expect("a file");
        assert_eq!(attached(&folder.path("__init__.py")), (1, 0));
        assert_eq!(attached(Path::new("/proc/self/status")), (1, 0));
        assert_eq!(attached(&folder.path("")), (0, 0));
        // A long file without blocks on the disk.
        let log = File::create(folder.path("log")).expect("a file");
        log.set_len(ATTACHMENT_BYTES_MAX).expect("a length");
        assert_eq!(attached(&folder.path("log")), (1, 0));
        log.set_len(ATTACHMENT_BYTES_MAX + 1).expect("a length");
        assert_eq!(attached(&folder.path("log")), (0, 1));
    }

    #[test]
    fn a_name_with_characters_that_an_editor_has_not_encoded_is_that_of_its_file() {
        let folder = TestFolder::new();
        std::fs::create_dir(folder.path("C#")).expect("a folder");
        for file in ["C#/a b?.txt", "a.rs"] {
            std::fs::write(folder.path(file), "x").expect("a file");
        }
        let linked = |file: &str| {
            let uri = format!("file://{}/{file}", folder.path("").to_string_lossy());
            let link = json!({ "type": "resource_link", "uri": uri, "name": "" });
            let mut draft = of(json!([link])).expect("a prompt");
            draft.settle(|_| false);
            draft.links[0].path.clone()
        };
        for file in ["C#/a b?.txt", "C#/a%20b?.txt", "C%23/a%20b%3F.txt"] {
            assert_eq!(linked(file), folder.path("C#/a b?.txt"), "{file}");
        }
        for part in ["a.rs#L1-2", "a.rs?line=1", "a.rs"] {
            assert_eq!(linked(part), folder.path("a.rs"), "{part}");
        }
    }

    #[test]
    fn files_that_are_too_many_or_too_long_together_are_only_named() {
        let folder = TestFolder::new();
        let submit = |sizes: &[u64], embedded: Value| {
            let mut blocks = vec![embedded];
            for (number, size) in sizes.iter().enumerate() {
                let path = folder.path(format!("{number}.log"));
                File::create(&path).and_then(|file| file.set_len(*size)).expect("a file");
                blocks.push(json!({ "type": "resource_link", "uri": path, "name": "log" }));
            }
            let mut draft = of(Value::Array(blocks)).expect("a prompt");
            draft.settle(|_| false);
            let text = draft.text.clone();
            draft.submit(text).expect("a submit")
        };
        let text = json!({ "type": "text", "text": "Read" });
        let Ready { submit: many, notices } = submit(&[1; ATTACHMENTS_MAX + 1], text.clone());
        assert_eq!(many.attachments.len(), ATTACHMENTS_MAX);
        let [only] = &notices[..] else { panic!("{notices:?}") };
        assert!(only.contains(&format!("/{ATTACHMENTS_MAX}.log is only named")), "{only}");
        assert!(only.ends_with("a prompt can have 32 files"), "{only}");
        // The one that is too much is left out, and not those after it.
        let sizes = [ATTACHMENT_BYTES_MAX, ATTACHMENT_BYTES_MAX, ATTACHMENT_BYTES_MAX, 1];
        let Ready { submit: long, notices } = submit(&sizes, text);
        assert_eq!((long.attachments.len(), notices.len()), (3, 1));
        assert!(notices[0].contains("/2.log is only named"), "{notices:?}");
        // What the client sends along counts.
        let resource = json!({ "uri": "file:///x/a.rs", "text": "fn a() {}" });
        let sizes = [
            ATTACHMENT_BYTES_MAX,
            ATTACHMENT_BYTES_MAX,
            PROMPT_BYTES_MAX - 2 * ATTACHMENT_BYTES_MAX,
        ];
        let embedded = json!({ "type": "resource", "resource": resource });
        let Ready { submit: both, notices } = submit(&sizes, embedded);
        assert_eq!((both.attachments.len(), notices.len()), (3, 1));
    }

    #[test]
    fn a_command_has_its_words_on_the_first_line() {
        let mut draft = of(json!([
            { "type": "text", "text": "/sum --n 3 " },
            { "type": "resource_link", "uri": "file:///p/a%20b.txt", "name": "a b.txt" },
            { "type": "text", "text": " " },
            { "type": "resource_link", "uri": "file:///p/c.txt", "name": "c.txt" },
            { "type": "text", "text": "\nAs in " },
            { "type": "resource_link", "uri": "file:///p/d.txt", "name": "d.txt" },
        ]))
        .expect("a prompt");
        let mut unknown = draft.clone();
        let is_sum = |name: &str| name == "sum";
        draft.settle(is_sum);
        let words = "sum --n 3 '/p/a b.txt' /p/c.txt";
        assert_eq!(draft.command(is_sum), Some((words, "As in [@d.txt](file:///p/d.txt)")));
        assert_eq!(paths(&draft), ["/p/d.txt"]);
        // What only begins as a command has its files sent.
        unknown.settle(|_| false);
        assert_eq!(unknown.command(|_| false), None);
        assert!(unknown.text.starts_with("/sum --n 3 [@a b.txt](file:///p/a%20b.txt) [@c.txt]("));
        assert_eq!(paths(&unknown), ["/p/a b.txt", "/p/c.txt", "/p/d.txt"]);
    }
}
