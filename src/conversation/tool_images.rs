//! Images in the results of tools. The text of a result has a note in the place of each: people, and models
//! that take no images, read that. A model that is sent the images reads notes that number them. Pure.

use super::event::ToolResult;
use crate::protocol::attachment::Attachment;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The end of a note on content that is not in the text, after its size.
const NOT_SHOWN: &str = " bytes, not shown]";

/// A note in the place of content of that kind, type and size.
pub(crate) fn note(kind: &str, media_type: &str, bytes: usize) -> String {
    format!("[{kind}: {media_type}, {bytes}{NOT_SHOWN}")
}

impl ToolResult {
    /// The images in it, in order.
    pub(crate) fn images(&self) -> &[Attachment] {
        match self {
            Self::WithImages { images, .. } => images,
            Self::Success(_) | Self::Error(_) => &[],
        }
    }

    /// The result with its images if these have at most so many bytes together, else its text.
    pub(crate) fn within(self, bytes_max: u64) -> Self {
        let bytes: u64 = self.images().iter().map(Attachment::len_bytes).sum();
        if bytes > bytes_max { self.without_images() } else { self }
    }

    /// The result without its images.
    pub(crate) fn without_images(self) -> Self {
        match self {
            Self::WithImages { text, .. } => Self::Success(text),
            Self::Success(_) | Self::Error(_) => self,
        }
    }

    /// The text for a model that is sent the images: the notes in their places number them. A note is known by
    /// its size; where a text repeats the notes, it repeats them in their order.
    pub(crate) fn text_beside_images(&self) -> Cow<'_, str> {
        let (mut shown, mut rest) = (String::new(), self.text());
        if self.images().is_empty() {
            return rest.into();
        }
        let mut numbers: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (number, image) in (1..).zip(self.images()) {
            numbers.entry(image.shown.size_bytes).or_default().push(number);
        }
        while let Some(at) = rest.find(NOT_SHOWN) {
            let (before, after) = (&rest[..at], &rest[at + NOT_SHOWN.len()..]);
            let size = before.rsplit_once(", ").and_then(|(_, size)| size.parse().ok());
            let its = size.and_then(|size: u64| numbers.get_mut(&size));
            shown += before;
            match its {
                Some(its) => {
                    shown += &format!(" bytes, image {} of this result]", its[0]);
                    its.rotate_left(1);
                }
                None => shown += NOT_SHOWN,
            }
            rest = after;
        }
        (shown + rest).into()
    }
}

#[cfg(test)]
pub(crate) fn png_of_bytes(bytes: usize) -> Attachment {
    let mut data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    data.resize(bytes, 0);
    Attachment::image(data).expect("an image")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_images(text: &str, bytes: &[usize]) -> ToolResult {
        let images = bytes.iter().map(|bytes| png_of_bytes(*bytes)).collect();
        ToolResult::WithImages { text: text.to_owned(), images }
    }

    #[test]
    fn notes_number_the_images_that_a_model_is_sent() {
        let check = |text: &str, bytes: &[usize], expected: &str| {
            assert_eq!(with_images(text, bytes).text_beside_images(), expected);
        };
        let first = note("image", "image/png", 40);
        assert_eq!(first, "[image: image/png, 40 bytes, not shown]");
        let other = note("audio", "audio/wav", 9);
        let two = format!("a\n{first}\n{other}\n{first}\nb");
        let numbered =
            |number| format!("[image: image/png, 40 bytes, image {number} of this result]");
        let expected = format!("a\n{}\n{other}\n{}\nb", numbered(1), numbered(2));
        check(&two, &[40, 40], &expected);
        // As of structured content that has the image again.
        check(&format!("{first}{first}"), &[40], &format!("{0}{0}", numbered(1)));
        check("cut before the no", &[40], "cut before the no");
        check("", &[40], "");
        let plain = ToolResult::Success(two.clone());
        assert_eq!(plain.text_beside_images(), two);
    }

    #[test]
    fn images_past_the_limit_are_left_out_together() {
        let result = with_images("x", &[40, 50]);
        assert_eq!(result.clone().within(90), result);
        assert_eq!(result.within(89), ToolResult::Success("x".to_owned()));
    }
}
