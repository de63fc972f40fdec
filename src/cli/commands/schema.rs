//! `duologue schema`: the protocol as `.proto` files, as descriptors or as JSON Schema, and filters for jq.

use super::args::{SchemaArgs, SchemaForm, SchemaOf};
use super::document::{self, Document};
use super::output::Failure;
use crate::protocol::schema;
use crate::support::files;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Filters for the lines of the protocol.
const JQ_MODULE: &str = include_str!("../../../clients/jq/duologue.jq");

/// Prints or writes the schema that `args` name; returns the exit status.
pub fn schema(args: &SchemaArgs) -> u8 {
    document::print(&args.output, || make(args))
}

fn make(args: &SchemaArgs) -> Result<Document, Failure> {
    if let (Some(_), SchemaForm::Descriptors | SchemaForm::Json | SchemaForm::Jq) =
        (&args.out, args.form)
    {
        let message = "--out is for .proto files; send the others into a file with >";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let (Some(_), SchemaForm::Proto | SchemaForm::Descriptors | SchemaForm::Jq) =
        (args.of, args.form)
    {
        let message = "--for is for JSON Schema, as in: duologue schema json --for request; the \
                       other forms always hold every message";
        return Err(Failure::Usage(message.to_owned()));
    }
    match (args.form, &args.out) {
        (SchemaForm::Proto, Some(folder)) => write_files(folder),
        (SchemaForm::Proto, None) => Ok(proto()),
        (SchemaForm::Descriptors, _) if !args.output.is_json() && io::stdout().is_terminal() => {
            let message = "descriptors are binary and this is a terminal; send them into a file, \
                           as in: duologue schema descriptors > descriptors.bin";
            Err(Failure::Usage(message.to_owned()))
        }
        (SchemaForm::Descriptors, _) => Ok(descriptors()),
        (SchemaForm::Jq, _) => {
            Ok(Document { text: JQ_MODULE.as_bytes().to_vec(), data: JQ_MODULE.into() })
        }
        (SchemaForm::Json, _) => {
            let data = json_schema(args.of.unwrap_or_default());
            Ok(Document { text: format!("{data:#}\n").into_bytes(), data })
        }
    }
}

fn json_schema(of: SchemaOf) -> Value {
    match of {
        SchemaOf::Frame => schema::frame(),
        SchemaOf::Request => schema::request(),
        SchemaOf::JsonStream => schema::json_stream(),
        SchemaOf::Envelope => schema::envelope(),
        SchemaOf::ListEvents => schema::list_events(),
        SchemaOf::Manifest => schema::manifest(),
    }
}

fn proto() -> Document {
    let files = schema::PROTO_FILES.iter();
    let data = files.map(|(name, text)| json!({ "name": name, "text": text })).collect();
    Document { text: schema::proto_text().into_bytes(), data }
}

/// Bytes are base64 in JSON, as in protobuf JSON.
fn descriptors() -> Document {
    let bytes = schema::descriptors();
    Document { text: bytes.to_vec(), data: BASE64.encode(bytes).into() }
}

fn write_files(folder: &Path) -> Result<Document, Failure> {
    files::check_home(folder).map_err(|error| {
        Failure::Unwritten(format!("--out: {} can't be written: {error}", folder.display()))
    })?;
    let mut written: Vec<Value> = Vec::new();
    for (name, text) in schema::PROTO_FILES {
        let path = folder.join(name);
        let result =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        result.map_err(|error| {
            Failure::Unwritten(format!("--out: {} can't be written: {error}", path.display()))
        })?;
        written.push(path.to_string_lossy().into());
    }
    Ok(Document { text: Vec::new(), data: written.into() })
}
