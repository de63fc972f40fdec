//! The resources of tool servers that a request names.

use super::files::Resources;
use crate::protocol::attachment::Attachment;
use crate::task::server::ServerName;
use crate::tool::servers::ToolServers;
use futures_util::future::{Either, ready, try_join_all};

/// What is to become of `attachments` once servers have sent the resources among them, all at the same time;
/// the attachments themselves if there is no resource. A resource may be several attachments.
pub(super) fn read(
    attachments: Vec<Attachment>,
    servers: &ToolServers,
) -> Result<Resources, Vec<Attachment>> {
    if attachments.iter().all(|attachment| attachment.as_resource().is_none()) {
        return Err(attachments);
    }
    let reads = attachments.into_iter().map(|attachment| match attachment.as_resource() {
        None => Either::Left(ready(Ok::<_, String>(vec![attachment]))),
        Some(name) => {
            let (shown, name) = (attachment.shown.clone(), name.clone());
            let server = ServerName::or_default(&name.server);
            let contents = servers.read_resource(&server, name.uri.clone());
            Either::Right(async move {
                let contents = contents.await;
                let contents = contents.map_err(|why| format!("resource {name}: {why}"))?;
                Ok(numbered(contents, &shown.attachment_id))
            })
        }
    });
    let reads: Vec<_> = reads.collect();
    Ok(Box::pin(async move {
        let read = try_join_all(reads).await?;
        Ok(read.into_iter().flatten().collect())
    }))
}

/// The contents of one resource, each with an id of its own.
fn numbered(mut contents: Vec<Attachment>, id: &str) -> Vec<Attachment> {
    for (number, content) in (1..).zip(&mut contents) {
        content.shown.attachment_id = match number {
            1 => id.to_owned(),
            _ => format!("{id}-{number}"),
        };
    }
    contents
}
