//! The models of a provider.

use super::{Interface, Remote, Shared, headers};
use crate::engine::provider::clock::Clock;
use crate::engine::provider::failure::Failure;
use crate::engine::provider::post::get;
use crate::engine::{CallSettings, RunError};

/// Pages of a list of models that are asked for.
const LIST_PAGES_MAX: usize = 10;

impl<I: Interface> Remote<I> {
    /// The models that the provider lists, asked for with the headers of `of_calls`.
    ///
    /// # Errors
    /// If it can't be asked, or has no list.
    pub(in crate::engine) async fn models(
        &self,
        of_calls: &CallSettings,
    ) -> Result<Vec<String>, RunError> {
        let Shared { settings, key, connection, .. } = &*self.shared;
        let unkeyed = self.failures(key.known().as_ref(), "", of_calls);
        self.ensure_key(&unkeyed).map_err(Failure::into_error)?;
        let key = key.get().await.map_err(|why| unkeyed.no_key_from_source(why).into_error())?;
        let failures = self.failures(key.as_ref(), "", of_calls);
        let headers =
            headers::<I>(key.as_ref(), of_calls, &failures).map_err(Failure::into_error)?;
        let has_secret = key.is_some() || !of_calls.extra_headers.is_empty();
        let mut clock = Clock::new(settings.total_timeout);
        let (mut models, mut next) = (Vec::new(), None);
        for _ in 0..LIST_PAGES_MAX {
            let url = I::MODELS.url(self.base_url(), key.is_none(), next.as_deref());
            let url =
                url.map_err(|why| failures.bad_base_url(&why, I::BASE_URL_EXAMPLE).into_error())?;
            let client = connection.client(&url, has_secret, &failures);
            let client = client.await.map_err(Failure::into_error)?;
            let body = get(client, url, headers.clone(), &mut clock, &failures).await;
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
