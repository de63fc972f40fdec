//! What was extracted from the answer, one JSON value a line, as the model wrote it.

use super::view::{View, error_document};
use crate::protocol::json::{self, Error};
use crate::protocol::wire::Frame;
use serde_json::json;

/// Version of the lines. Raised when a reader of the old ones could not read the new.
const VERSION: u32 = 1;

/// The lines. The first names the format, unless it is not wanted.
#[derive(Clone, Debug)]
pub struct Objects {
    /// What the objects are called.
    pub schema: String,
    /// Whether the format is named, and what goes wrong is told, in lines of their own.
    pub has_preamble: bool,
}

impl Objects {
    pub(super) fn frame(&self, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Error> {
        match View::of(frame) {
            View::Hello if self.has_preamble => {
                let schema = serde_json::to_string(&self.schema)?;
                // Spelled as readers that look for its first bytes know it.
                let line = format!(
                    "{{\"_format\": \"jsonl\", \"_schema\": {schema}, \"_version\": {VERSION}}}"
                );
                json::write_raw_line(&line, out);
                Ok(())
            }
            View::Object(object) => {
                json::write_raw_line(&object.json, out);
                Ok(())
            }
            // Has a `_format`, so that whoever passes over the first line passes over it as well.
            View::Error(error) if self.has_preamble => json::write_line(
                &json!({ "_format": "jsonl", "_error": error_document(error) }),
                out,
            ),
            View::Hello
            | View::Error(_)
            | View::RunStarted
            | View::Text(_)
            | View::Thinking(_)
            | View::ToolRequested(_)
            | View::ToolReturned(_)
            | View::CallFinished(_)
            | View::Rejected(_)
            | View::Extracted(_)
            | View::Other => Ok(()),
        }
    }
}
