//! The models of a provider.

use super::{Interface, Remote, Shared, headers};
use crate::engine::provider::clock::Clock;
use crate::engine::provider::failure::Failure;
use crate::engine::provider::post::get;
use crate::engine::{CallSettings, ListedModel, RunError, is_same_model};
use std::time::Duration;
use tokio::time::timeout;

/// Pages of a list of models that are asked for.
const LIST_PAGES_MAX: usize = 10;

/// How long a call that has failed waits for what the list says of its model.
const CONTEXT_MAX: Duration = Duration::from_secs(5);

impl<I: Interface> Remote<I> {
    /// Tokens of the most that `model` can be sent, if the provider's list says that.
    pub(super) async fn context_tokens(&self, model: &str, of_calls: &CallSettings) -> Option<u64> {
        let listed = timeout(CONTEXT_MAX, self.models(of_calls)).await.ok()?.ok()?;
        listed.into_iter().find(|listed| is_same_model(&listed.name, model))?.context_tokens
    }

    /// The models that the provider lists, asked for with the headers of `of_calls`.
    ///
    /// # Errors
    /// If it can't be asked, or has no list.
    pub(in crate::engine) async fn models(
        &self,
        of_calls: &CallSettings,
    ) -> Result<Vec<ListedModel>, RunError> {
        let Shared { settings, key, connection, .. } = &*self.shared;
        let unkeyed = self.failures(key.known().as_ref(), "", of_calls);
        self.ensure_key(&unkeyed).map_err(Failure::into_error)?;
        let key = key.get().await.map_err(|why| unkeyed.no_key_from_source(why).into_error())?;
        let failures = self.failures(key.as_ref(), "", of_calls);
        let has_secret = key.is_some() || !of_calls.extra_headers.is_empty();
        let mut clock = Clock::new(settings.total_timeout);
        let (mut models, mut next) = (Vec::new(), None);
        for _ in 0..LIST_PAGES_MAX {
            let url = I::MODELS.url(self.base_url(), key.is_none(), next.as_deref());
            let url =
                url.map_err(|why| failures.bad_base_url(&why, I::BASE_URL_EXAMPLE).into_error())?;
            let headers = headers::<I>(key.as_ref(), &url, of_calls, &failures);
            let headers = headers.map_err(Failure::into_error)?;
            let client = connection.client(&url, has_secret, &failures);
            let client = client.await.map_err(Failure::into_error)?;
            let body = get(client, url, headers, &mut clock, &failures).await;
            let page =
                body.and_then(|body| I::MODELS.read(&body).ok_or_else(|| failures.no_list()));
            let page = page.map_err(Failure::into_error)?;
            models.extend(page.models);
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        Ok(models)
    }
}
