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
        match View::of(frame) {
            View::Hello if self.has_preamble => {
                let schema = serde_json::to_string(&self.schema)?;
                // Written exactly so: some readers compare the first bytes.
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
            // Has a `_format`, so that a reader that skips the first line skips this one too.
            View::Error(error) if self.has_preamble => json::write_line(
                &json!({ "_error": error_document(error), "_format": "jsonl" }),
                out,
            ),
            View::Hello
            | View::Error(_)
            | View::RunStarted
            | View::Text(_)
            | View::Thinking(_)
            | View::CallStarted
            | View::ToolRequested(_)
            | View::ToolStarted(_)
            | View::ToolReturned(_)
            | View::CallFinished(_)
            | View::Rejected(_)
            | View::Extracted(_)
            | View::AnswerRejected(_)
            | View::Timing(_)
            | View::UsageTotals(_)
            | View::Other => Ok(()),
        }
    }
}
