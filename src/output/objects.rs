//! The values extracted from the answer, one JSON value a line, as the model wrote them.

use super::view::{View, error_document};
use crate::protocol::json::{self, Error};
use crate::protocol::wire::Frame;
use serde_json::json;

/// Version of the format. Raised when an older reader could not read new lines.
const VERSION: u32 = 1;

/// The format `objects`. The first line names the format, unless that is turned off.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    /// The name of the objects' schema.
    pub schema: String,
    /// Whether the format and errors are written in lines of their own.
    pub has_preamble: bool,
}

impl Objects {
    pub(super) fn frame(&self, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Error> {
        let view = View::of(frame);
        if let View::Object(object) = &view {
            json::write_raw_line(&object.json, out);
        }
        if !self.has_preamble {
            return Ok(());
        }
        if let View::Hello = &view {
            let schema = serde_json::to_string(&self.schema)?;
            // Written exactly so: some readers compare the first bytes.
            let line = format!(
                "{{\"_format\": \"jsonl\", \"_schema\": {schema}, \"_version\": {VERSION}}}"
            );
            json::write_raw_line(&line, out);
        }
        if let View::Error(error) = &view {
            // Has a `_format`, so that a reader that skips the first line skips this one too.
            let line = json!({ "_error": error_document(error), "_format": "jsonl" });
            json::write_line(&line, out)?;
        }
        Ok(())
    }
}
