//! An open conversation of a node, from its opening to its end.

use super::{Key, Node};
use crate::host::HostSettings;
use crate::serve::conversation::{Conversation, Idle, Mail, Opened};
use crate::serve::refusal::{Refusal, RefusalKind};
use crate::serve::services::Opening;
use crate::serve::tenants::Tenant;
use crate::store::OpenMode;
use crate::support::threads;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::Instrument;

/// An open conversation. Its handle leaves the node once this is dropped, also by a panic.
pub(super) struct OpenConversation {
    pub(super) node: Arc<Node>,
    pub(super) tenant: Arc<Tenant>,
    pub(super) key: Key,
    pub(super) _ending: watch::Sender<()>,
}

impl Drop for OpenConversation {
    fn drop(&mut self) {
        let mut all = self.node.lock_handles();
        all.remove(&self.key);
        if self.tenant.end() {
            self.node.turns.tenant(false);
        }
        drop(all);
        self.node.ended.notify_waiters();
    }
}

/// Opens a conversation, and drives it to its end.
pub(super) async fn open_and_drive(
    open: OpenConversation,
    mode: OpenMode,
    mut mail: mpsc::Receiver<Mail>,
    room: Arc<Notify>,
    idle: Arc<Idle>,
) {
    let Key { namespace, session } = open.key.clone();
    let opening = Opening { namespace, session: session.clone(), mode };
    match settings(&open.node, opening).await {
        Ok(settings) => {
            let node = &open.node;
            let (times, counts) = (node.services.times, Arc::clone(&node.counts));
            let tenant = Arc::clone(&open.tenant);
            let runs = [Arc::clone(&node.runs), Arc::clone(&tenant.runs)];
            let spans = node
                .traces
                .as_ref()
                .map(|it| it.spans_for(session.as_str(), open.key.namespace.tenant()));
            let is_stored = !node.services.places.is_empty();
            let opened = Opened {
                session,
                settings,
                mail,
                room,
                idle,
                runs,
                tenant,
                is_stored,
                times,
                counts,
                spans,
            };
            let (id, tenant) = (open.key.session.as_str(), open.key.namespace.tenant());
            // Lines of the log that concern the conversation name it.
            let span = tracing::error_span!("conversation", session = id, tenant);
            Box::pin(Conversation::new(opened).drive()).instrument(span).await;
        }
        Err(refusal) => {
            mail.close();
            while let Ok(mail) = mail.try_recv() {
                if let Mail::Attach(attach) = mail {
                    attach.link.end(Err(refusal.clone()));
                }
            }
        }
    }
    drop(open);
}

/// Makes the settings of a conversation in a thread, which may wait for a slow disk.
async fn settings(node: &Node, opening: Opening) -> Result<HostSettings, Refusal> {
    let (opener, (to, made)) = (Arc::clone(&node.services.opener), oneshot::channel());
    let work = move || drop(to.send(opener(opening)));
    let failed = |why: String| Refusal::new(RefusalKind::Failed, why);
    // Nobody closes it.
    let _permit = node.openings.acquire().await.ok();
    threads::spawn("serve-open", work).map_err(|error| failed(error.to_string()))?;
    let settings = made.await.map_err(|_| Refusal::defect())?;
    settings.map_err(|error| failed(format!("the conversation can't be opened: {error:#}")))
}
