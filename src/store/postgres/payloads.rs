//! The payloads of the rows of one table, as a value of PostgreSQL. What they share with the conversation is
//! copied only when they are sent.

use crate::protocol::pieces::Pieces;
use std::error::Error;
use std::sync::Arc;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};

/// Payloads of several rows, in their order.
#[derive(Debug, Default)]
pub(super) struct Payloads(pub(super) Vec<Payload>);

/// The payload of a row.
#[derive(Debug)]
pub(super) enum Payload {
    Message(Arc<Pieces>),
    Data(Arc<[u8]>),
}

/// Bytes before the elements of an array, and before each of them.
const ARRAY_BYTES: usize = 20;
const ELEMENT_BYTES: usize = 4;

impl Payload {
    fn size(&self) -> usize {
        match self {
            Self::Message(pieces) => pieces.size(),
            Self::Data(data) => data.len(),
        }
    }
}

impl ToSql for Payloads {
    /// As an array of one dimension.
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let sizes = self.0.iter().map(|payload| ELEMENT_BYTES + payload.size());
        // As much as it takes, as it may be large: what grows by itself may take twice of it.
        out.reserve(ARRAY_BYTES + sizes.sum::<usize>());
        let (dimensions, has_nulls, first) = (1_i32, 0_i32, 1_i32);
        let count = i32::try_from(self.0.len())?;
        out.extend_from_slice(&dimensions.to_be_bytes());
        out.extend_from_slice(&has_nulls.to_be_bytes());
        out.extend_from_slice(&Type::BYTEA.oid().to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&first.to_be_bytes());
        for payload in &self.0 {
            out.extend_from_slice(&i32::try_from(payload.size())?.to_be_bytes());
            match payload {
                Payload::Message(pieces) => pieces.write_to(out),
                Payload::Data(data) => out.extend_from_slice(data),
            }
        }
        Ok(IsNull::No)
    }

    accepts!(BYTEA_ARRAY);

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_an_array_of_bytes() {
        let all: [&[u8]; 4] = [b"", b"a", b"bc", &[7; 3000]];
        for count in 0..=all.len() {
            let expected: Vec<&[u8]> = all[..count].to_vec();
            let payload = |(number, bytes): (usize, &&[u8])| match number % 2 {
                0 => Payload::Message(Arc::new(Pieces::from(bytes.to_vec()))),
                _ => Payload::Data((*bytes).into()),
            };
            let payloads = Payloads(expected.iter().enumerate().map(payload).collect());
            let written = |value: &dyn ToSql| {
                let mut out = BytesMut::new();
                value.to_sql_checked(&Type::BYTEA_ARRAY, &mut out).expect("an array");
                out
            };
            assert_eq!(written(&payloads), written(&expected), "{count}");
        }
    }
}
