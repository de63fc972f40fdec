//! What a provider, or its interface, has no place for: refused before anything is sent.

use super::remote::Refused;
use crate::protocol::attachment::Attachment;

/// `attachment` can't be sent to `provider`, which takes `taken`.
pub(in crate::engine) fn attachment(
    provider: &str,
    attachment: &Attachment,
    taken: &str,
) -> Refused {
    let what = match (attachment.url(), attachment.shown.media_type.as_str()) {
        (Some(_), "") => "named by its address".to_owned(),
        (Some(_), media_type) => format!("{media_type}, named by its address"),
        (None, "") => "of an unknown type".to_owned(),
        (None, media_type) => media_type.to_owned(),
    };
    Refused::OtherEngine(format!(
        "the attachment {:?} ({what}) can't be sent to {provider}, which takes {taken}: leave it out, \
         or choose another engine",
        attachment.filename()
    ))
}
