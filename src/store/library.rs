//! All sessions of a store, for people: what there is, what was said, and how it is deleted. Nothing
//! here writes, except what deletes. What is done in one store is for its kind to do.

use super::batch::TITLE_CHARS_MAX;
use super::database::ask;
use super::error::StoreError;
use super::inspection::{Inspected, inspect};
use super::place::{Namespace, StorePlace};
use super::postgres::OwnProcess;
use super::reading::{Reading, Sink};
use super::search::{Hit, Search};
use super::words::Phrases;
use super::{Claim, Store, sessions, words};
use crate::conversation::summaries::Summaries;
use crate::conversation::timeline::Span;
use crate::conversation::transcript::Turn;
use crate::protocol::id::SessionId;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::session::as_if_ended;
use crate::support::fail_point::FailPoint;
use crate::support::terminal::escape_control;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The stores in which sessions are kept.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    places: Vec<StorePlace>,
    /// Whose sessions they are; `None`: all.
    namespace: Option<Namespace>,
    /// Nobody has named the places.
    is_default: bool,
}

/// Open stores, from which several sessions are read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    library: &'a Library,
    /// Those that are there.
    stores: Vec<Store>,
    /// Why the server of another one can't be asked, for people.
    away: Option<String>,
}

/// What the stores have answered to a question.
#[derive(Debug)]
struct Answers<T> {
    /// Each with the number of its store.
    of_stores: Vec<(usize, T)>,
    /// Why the other stores can't be asked, for people.
    losses: Vec<String>,
    /// One of these, if that store may have what the others lack.
    away: Option<String>,
}

/// What a list says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) id: String,
    /// The beginning of the first prompt.
    pub(crate) title: String,
    pub(crate) folder: String,
    pub(crate) turns: u32,
    /// Bytes of everything that is kept of it.
    pub(crate) bytes: u64,
    /// When it was written first and last, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    /// Its place in the order of the last writes in its store; a clock may be put back.
    pub(crate) changed: i64,
    /// The place of that store among those of the library.
    pub(crate) store: usize,
}

/// A part of a list of sessions, the one that was written last first.
#[cfg(feature = "serve")]
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// What the stored ids begin with, or do not.
    pub(super) prefix: String,
    pub(super) is_prefixed: bool,
    /// Only what comes behind this time and stored id.
    pub(super) before: (i64, String),
    pub(super) max: usize,
}

/// A conversation as people see it.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) session: SessionId,
    pub(crate) state: SnapshotFrame,
    /// What answered in each turn, and what it took.
    pub(crate) summaries: Summaries,
    /// What the model is sent in place of earlier turns and results.
    pub(crate) compactions: Vec<SnapshotEntity>,
    /// The turns as the model is sent them, if they are stored here.
    pub(crate) turns: Vec<Arc<Turn>>,
    /// What could not be read, for people.
    pub(crate) loss: Option<String>,
}

/// Where the words of a search are in a session.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Oldest first.
    pub(crate) hits: Vec<Hit>,
    /// What could not be read, for people.
    pub(crate) loss: Option<String>,
}

/// The sessions of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) sessions: Vec<Summary>,
    /// What could not be read, for people.
    pub(crate) losses: Vec<String>,
}

/// What became of a session that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// Nothing of it is left in the files, or in the tables of a server.
    Whole,
    /// It is deleted, but another process reads the store, and until it ends the log keeps old pages.
    ButLog,
    /// There was no such session.
    Missing,
}

/// The sessions of one title, or whose ids, or else whose titles, begin alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alike {
    pub(crate) ids: Vec<String>,
    /// Not all of the store could be read, so there may be more of them.
    pub(crate) is_partial: bool,
}

/// What generated ids begin with.
pub(crate) const GENERATED_PREFIX: &str = "session-";

/// Ids that an error names, where several begin alike.
const NAMED_MAX: usize = 5;

/// Why no session was chosen where several begin alike, for people.
pub(crate) fn ambiguous(typed: &str, ids: &[String]) -> String {
    format!(
        "{} sessions have an id or a title that begins with {}, so none was chosen; type more of one, or an \
         id: {}",
        ids.len(),
        escape_control(typed),
        shown_ids(ids)
    )
}

/// The first of these ids, for people.
pub(crate) fn shown_ids(ids: &[String]) -> String {
    let shown: Vec<_> = ids.iter().take(NAMED_MAX).map(|id| escape_control(id)).collect();
    let more = if ids.len() > NAMED_MAX { ", …" } else { "" };
    shown.join(", ") + more
}

impl Library {
    /// The sessions in these places, which hold the same logs. Nothing is opened yet.
    pub(crate) fn new(places: Vec<StorePlace>) -> Self {
        Self { places, namespace: None, is_default: false }
    }

    /// Marks the places as those of a default, which are made with the first session.
    pub(crate) fn of_default(self, is_default: bool) -> Self {
        Self { is_default, ..self }
    }

    /// The sessions of a tenant alone, by the ids that the tenant knows.
    #[cfg(feature = "serve")]
    pub(crate) fn within(self, namespace: Namespace) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Whether stores of which none is there have no sessions: those of a node, and a default one, begin with their
    /// first conversation. A name that was typed may be wrong.
    fn may_be_absent(&self) -> bool {
        self.namespace.is_some() || self.is_default
    }

    /// Whether another store is read in place of one that can't be reached.
    fn does_without(&self, error: &StoreError) -> bool {
        self.places.len() > 1 && error.is_away()
    }

    fn stored(&self, session: &SessionId) -> SessionId {
        self.namespace.as_ref().map_or_else(|| session.clone(), |it| it.stored(session))
    }

    /// Looks at each store, without changing it; at one on a server only if `connects`.
    pub(crate) fn inspect(&self, connects: bool) -> Vec<Inspected> {
        self.places.iter().map(|place| inspect(place, connects, false)).collect()
    }

    /// Like `inspect`, and reads the sessions in files, for some seconds.
    pub(crate) fn inspect_sessions(&self, connects: bool) -> Vec<Inspected> {
        self.places.iter().map(|place| inspect(place, connects, true)).collect()
    }

    /// All sessions that can be read, the one that was written last first.
    ///
    /// # Errors
    /// If a store can't be read at all, for a person.
    pub(crate) fn sessions(&self) -> Result<Listing, String> {
        self.listing(Store::summaries)
    }

    /// Like `sessions`, but sizes may be 0, because a server has to add them up.
    ///
    /// # Errors
    /// If a store can't be read at all, for a person.
    pub(crate) fn titles(&self) -> Result<Listing, String> {
        self.listing(Store::titles)
    }

    fn listing(
        &self,
        list: impl Fn(&mut Store) -> Result<(Vec<Summary>, Option<String>), StoreError>,
    ) -> Result<Listing, String> {
        let mut all: BTreeMap<String, Summary> = BTreeMap::new();
        let lists = self.ask_each(list).map_err(|error| error.to_string())?;
        let mut losses = lists.losses;
        for (number, (summaries, loss)) in lists.of_stores {
            for summary in summaries {
                let shown = match &self.namespace {
                    None => Some(summary.id.as_str()),
                    Some(namespace) => namespace.shown(&summary.id),
                };
                let Some(id) = shown.map(str::to_owned) else { continue };
                let summary = Summary { id, store: number, ..summary };
                all.entry(summary.id.clone()).or_default().add(summary);
            }
            losses.extend(loss);
        }
        let mut all: Vec<_> = all.into_values().collect();
        // Each store has an order of its own; that of the first counts for the sessions in it.
        all.sort_by(|a, b| a.store.cmp(&b.store).then(b.changed.cmp(&a.changed)));
        Ok(Listing { sessions: all, losses })
    }

    /// Asks each of the stores. One of two may be gone, as the other one has the same: it is an error only if all are.
    fn ask_each<T>(
        &self,
        question: impl Fn(&mut Store) -> Result<T, StoreError>,
    ) -> Result<Answers<T>, StoreError> {
        let (mut of_stores, mut absent, mut away) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_there = false;
        for (number, place) in self.places.iter().enumerate() {
            if place.path().is_some_and(sessions::is_empty) {
                is_there = true;
                continue;
            }
            match ask(place, &question) {
                Ok(answer) => of_stores.push((number, answer)),
                Err(error) if error.is_absence() => absent.push(error),
                Err(error) if self.does_without(&error) => away.push(error),
                Err(error) => return Err(error),
            }
        }
        is_there |= !of_stores.is_empty();
        if !is_there && self.may_be_absent() {
            absent.clear();
        }
        let losses = absent.iter().chain(&away).map(ToString::to_string).collect();
        let reason = away.first().map(ToString::to_string);
        match away.into_iter().chain(absent).next().filter(|_| !is_there) {
            Some(error) => Err(error),
            None => Ok(Answers { of_stores, losses, away: reason }),
        }
    }

    /// What the list says of one session; `None` if it is not there.
    ///
    /// # Errors
    /// If a store can't be read at all, for a person.
    #[cfg(feature = "serve")]
    pub(crate) fn summary(&self, session: &SessionId) -> Result<Option<Summary>, String> {
        let stored = self.stored(session);
        let mut all = Summary::default();
        let found = self.ask_each(|store| store.summary(&stored));
        let found = found.map_err(|error| error.to_string())?;
        for (number, found) in found.of_stores {
            if let Some(found) = found {
                let id = session.as_str().to_owned();
                all.add(Summary { id, store: number, ..found });
            }
        }
        match found.away.filter(|_| all.id.is_empty()) {
            Some(why) => Err(why),
            None => Ok((!all.id.is_empty()).then_some(all)),
        }
    }

    /// The sessions that were written last, of those behind `after` (the time of the last write, and the id): at least
    /// `max` if there are as many, in no order. A store on a server reads no others.
    ///
    /// # Errors
    /// If a store can't be read at all, for a person.
    #[cfg(feature = "serve")]
    pub(crate) fn newest(
        &self,
        after: Option<&(i64, String)>,
        max: usize,
    ) -> Result<Listing, String> {
        // What several stores say of a session is put together first.
        let [place @ StorePlace::Postgres(_)] = &self.places[..] else { return self.sessions() };
        let (prefix, is_prefixed) =
            self.namespace.as_ref().map_or((String::new(), true), Namespace::prefix);
        let before = after.map_or((i64::MAX, String::new()), |(at, id)| {
            (*at, if is_prefixed { format!("{prefix}{id}") } else { id.clone() })
        });
        let part = Part { prefix, is_prefixed, before, max };
        let found = match ask(place, |store| store.newest(&part)) {
            Err(error) if error.is_absence() && self.may_be_absent() => Vec::new(),
            found => found.map_err(|error| error.to_string())?,
        };
        let shown = |summary: Summary| {
            let id = match &self.namespace {
                None => summary.id,
                Some(namespace) => namespace.shown(&summary.id)?.to_owned(),
            };
            Some(Summary { id, ..summary })
        };
        Ok(Listing { sessions: found.into_iter().filter_map(shown).collect(), losses: Vec::new() })
    }

    /// The sessions whose title is `typed`, as far as titles are stored, where no id is; if there is none, those whose
    /// ids begin with it, which may leave out the word that begins every generated id, or else their titles.
    ///
    /// # Errors
    /// If a store can't be read at all, for a person.
    pub(crate) fn beginning_with(&self, typed: &str) -> Result<Alike, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return Ok(Alike::default());
        }
        let Listing { sessions, losses } = self.titles()?;
        let by_id = |it: &Summary| {
            let generated = it.id.strip_prefix(GENERATED_PREFIX);
            it.id.starts_with(typed) || generated.is_some_and(|rest| rest.starts_with(typed))
        };
        let title: String = typed.chars().take(TITLE_CHARS_MAX).collect();
        let by_title = |it: &Summary| it.title.starts_with(&title);
        let ways: [&dyn Fn(&Summary) -> bool; 4] =
            [&|it| it.id == typed, &|it| it.title == title, &by_id, &by_title];
        let found = ways.into_iter().map(|is_it| sessions.iter().filter(|it| is_it(it)));
        let found = found.map(|found| found.map(|it| it.id.clone()).collect::<Vec<_>>());
        let ids = found.into_iter().find(|ids| !ids.is_empty()).unwrap_or_default();
        Ok(Alike { ids, is_partial: !losses.is_empty() })
    }

    /// Whether a store has this session.
    ///
    /// # Errors
    /// If a store can't be read, for a person.
    pub(crate) fn has(&self, session: &SessionId) -> Result<bool, String> {
        let found = self.ask_each(|store| store.has(session));
        let found = found.map_err(|error| error.to_string())?;
        let has = found.of_stores.iter().any(|(_, has)| *has);
        found.away.filter(|_| !has).map_or(Ok(has), Err)
    }

    /// Checks that each store answers, as one from which a session is to be deleted has to: the session would be left
    /// in the one that is gone.
    ///
    /// # Errors
    /// If one does not, for a person.
    #[cfg(feature = "serve")]
    pub(crate) fn check_each(&self, session: &SessionId) -> Result<(), String> {
        let stored = self.stored(session);
        let asked = self.ask_each(|store| store.has(&stored));
        let absent = asked.map_err(|error| error.to_string())?.losses;
        absent.into_iter().next().map_or(Ok(()), Err)
    }

    /// The sessions in which all of `words` may be; `None` if a store can't say without reading them.
    ///
    /// # Errors
    /// If a store can't be read, for a person.
    pub(crate) fn with_words(&self, words: &[String]) -> Result<Option<BTreeSet<String>>, String> {
        let terms = words::terms(words.iter().map(String::as_str));
        // Each has the same sessions, unless one of them is not complete.
        let [place] = &self.places[..] else { return Ok(None) };
        let found = ask(place, |store| store.with_words(&terms));
        found.map_err(|error| error.to_string())
    }

    /// Opens the stores, to read many sessions over the same connections.
    ///
    /// # Errors
    /// If a store can't be read, for a person.
    pub(crate) fn reader(&self) -> Result<Reader<'_>, String> {
        self.open().map_err(|error| error.to_string())
    }

    fn open(&self) -> Result<Reader<'_>, StoreError> {
        let (mut stores, mut absent, mut away) = (Vec::new(), None, None);
        for place in &self.places {
            match Store::look(place) {
                Ok(store) => stores.push(store),
                // The other one may have what is asked for.
                Err(error) if error.is_absence() => absent = Some(error),
                Err(error) if self.does_without(&error) => away = Some(error),
                Err(error) => return Err(error),
            }
        }
        let absent = absent.filter(|_| !self.may_be_absent());
        let reason = away.as_ref().map(ToString::to_string);
        match away.or(absent).filter(|_| stores.is_empty()) {
            Some(error) => Err(error),
            None => Ok(Reader { library: self, stores, away: reason }),
        }
    }

    /// What was said in a session; `None` if there is no such session. A run without an end is shown as it
    /// would be if it ended here.
    ///
    /// # Errors
    /// If a store can't be read, for a person.
    pub(crate) fn conversation(&self, session: &SessionId) -> Result<Option<Conversation>, String> {
        let reading = self.read(session, || Sink::Export(Box::default()));
        let reading = reading.map_err(|error| error.to_string())?;
        if !reading.is_there() && reading.loss.is_none() {
            return Ok(None);
        }
        let Some(restored) = reading.restored() else { return Ok(None) };
        let loss = restored.loss.as_ref().map(|loss| loss.reason.clone());
        let ended = as_if_ended(restored);
        let state = ended.timeline.snapshot(session, Span::Conversation);
        let compactions = ended.timeline.compactions(session, Span::Conversation);
        let turns = ended.transcript.turns().to_vec();
        let summaries = ended.summaries.unwrap_or_default();
        let session = session.clone();
        Ok(Some(Conversation { session, state, summaries, compactions, turns, loss }))
    }

    /// Reads the log of a session from the store that has most of it.
    pub(super) fn read(
        &self,
        session: &SessionId,
        sink: impl Fn() -> Sink,
    ) -> Result<Reading, StoreError> {
        self.open()?.read(session, sink)
    }

    /// Deletes a session from all files, so that nothing of it can be read in them.
    ///
    /// # Errors
    /// If a process holds it, or a store can't be written, for a person.
    pub(crate) fn delete(&self, session: &SessionId) -> Result<Deleted, String> {
        self.try_delete(session).map_err(|error| error.to_string())
    }

    /// Deletes a session that nobody has written since `since_ms` (milliseconds since 1970); `None` if somebody has,
    /// or a process holds it.
    ///
    /// # Errors
    /// If a store can't be read or written, for a person.
    pub(crate) fn delete_unused(
        &self,
        session: &SessionId,
        since_ms: i64,
    ) -> Result<Option<Deleted>, String> {
        self.while_unused(session, since_ms, delete_from)
    }

    /// Whether `delete_unused` would delete a session now.
    ///
    /// # Errors
    /// If a store can't be read, or be claimed in, for a person.
    pub(crate) fn is_unused(&self, session: &SessionId, since_ms: i64) -> Result<bool, String> {
        Ok(self.while_unused(session, since_ms, |_, _, _| Ok(()))?.is_some())
    }

    fn while_unused<T>(
        &self,
        session: &SessionId,
        since_ms: i64,
        act: impl FnOnce(&mut [Store], &SessionId, &[Claim]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, String> {
        let stored = self.stored(session);
        let done = self.while_claimed(&stored, |stores, claims| {
            for store in stores.iter_mut() {
                if store.summary(&stored)?.is_some_and(|it| it.updated_ms >= since_ms) {
                    return Ok(None);
                }
            }
            act(stores, &stored, claims).map(Some)
        });
        match done {
            Err(StoreError::Locked { .. }) => Ok(None),
            done => done.map_err(|error| error.to_string()),
        }
    }

    /// Like `delete`; the error also has the address of the process that holds the session, if one does: empty if it is
    /// no node.
    #[cfg(feature = "serve")]
    pub(crate) fn delete_here(
        &self,
        session: &SessionId,
    ) -> Result<Deleted, (String, Option<String>)> {
        self.try_delete(session).map_err(|error| {
            let address = if let StoreError::Locked { address, .. } = &error {
                Some(address.clone())
            } else {
                None
            };
            (error.to_string(), address)
        })
    }

    fn try_delete(&self, session: &SessionId) -> Result<Deleted, StoreError> {
        let stored = self.stored(session);
        self.while_claimed(&stored, |stores, claims| delete_from(stores, &stored, claims))
    }

    /// Calls `act` with the stores that have a session, while the session is claimed in each of them.
    fn while_claimed<T>(
        &self,
        session: &SessionId,
        act: impl FnOnce(&mut [Store], &[Claim]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut open = Vec::new();
        // All of them are claimed before one is changed.
        let done = self.claim(session, &mut open).and_then(|claims| act(&mut open, &claims));
        open.iter_mut().for_each(Store::leave);
        done
    }

    /// Calls `read` while no other process writes a session; `None` if one has it, or a store can't be asked.
    pub(super) fn while_free<T>(&self, session: &SessionId, read: impl FnOnce() -> T) -> Option<T> {
        let session = &self.stored(session);
        let Reader { mut stores, away: None, .. } = self.open().ok()? else { return None };
        let claims = stores.iter_mut().map(|store| store.check_free(session));
        let claims: Vec<_> = claims.collect::<Result<_, _>>().ok()?;
        let found = read();
        // A process may have got it from a server meanwhile.
        let asked = stores.iter_mut().zip(&claims).filter(|(_, claim)| claim.is_none());
        let is_free = asked.map(|(store, _)| store.check_free(session)).all(|it| it.is_ok());
        is_free.then_some(found)
    }

    /// Claims a session in the stores that have it, which are added to `open`.
    fn claim(&self, session: &SessionId, open: &mut Vec<Store>) -> Result<Vec<Claim>, StoreError> {
        let mut claims = Vec::new();
        for place in &self.places {
            let process = OwnProcess::default();
            let mut store = match Store::open(place, false, &process, FailPoint::default()) {
                Err(error) if error.is_absence() && self.may_be_absent() => continue,
                opened => opened?,
            };
            if store.has(session)? {
                let claim = store.claim(session);
                open.push(store);
                claims.push(claim?);
            }
        }
        Ok(claims)
    }
}

/// Deletes a session from the stores that have it, where it is claimed.
fn delete_from(
    stores: &mut [Store],
    session: &SessionId,
    claims: &[Claim],
) -> Result<Deleted, StoreError> {
    let mut deleted = if stores.is_empty() { Deleted::Missing } else { Deleted::Whole };
    for (store, claim) in stores.iter_mut().zip(claims) {
        if !store.delete(session, claim)? {
            deleted = Deleted::ButLog;
        }
    }
    Ok(deleted)
}

impl Reader<'_> {
    /// Why one of the stores is not read any more, for people.
    pub(crate) fn away(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// Where all words of a search are in a session, at most `max` places; `None` if there is no such
    /// session.
    ///
    /// # Errors
    /// If the store can't be read, or there is no timeline, for a person.
    pub(crate) fn search(
        &mut self,
        session: &SessionId,
        phrases: &Phrases,
        max: usize,
    ) -> Result<Option<Found>, String> {
        let sink = || Sink::Search(Search::new(session, phrases, max));
        let reading = self.read(session, sink).map_err(|error| error.to_string())?;
        let loss = reading.loss.map(|loss| loss.reason);
        let (true, Sink::Search(search)) = (reading.start.is_some(), reading.sink) else {
            return Ok(loss.map(|loss| Found { hits: Vec::new(), loss: Some(loss) }));
        };
        Ok(Some(Found { hits: search.finish(), loss }))
    }

    /// Reads the log of a session from the store that has it whole, or most of it.
    fn read(
        &mut self,
        session: &SessionId,
        sink: impl Fn() -> Sink,
    ) -> Result<Reading, StoreError> {
        let mut best: Option<Reading> = None;
        let mut absent = None;
        let session = &self.library.stored(session);
        let mut number = 0;
        while let Some(store) = self.stores.get_mut(number) {
            match store.load(session, sink()) {
                Ok(reading) => {
                    if best.as_ref().is_none_or(|best| reading.rank() > best.rank()) {
                        best = Some(reading);
                    }
                }
                // The other one may have it.
                Err(error) if error.is_absence() => absent = Some(error),
                Err(error) if self.library.does_without(&error) => {
                    self.away = Some(error.to_string());
                    // The next session would wait for it as long.
                    drop(self.stores.remove(number));
                    continue;
                }
                Err(error) => return Err(error),
            }
            number += 1;
        }
        if let Some(why) = &self.away
            && !best.as_ref().is_some_and(Reading::is_there)
        {
            return Err(StoreError::Failed(why.clone()));
        }
        match (best, absent) {
            (Some(best), _) => Ok(best),
            (None, Some(absent)) if !self.library.may_be_absent() => Err(absent),
            (None, Some(_) | None) => Ok(Reading::new(session, String::new(), sink())),
        }
    }
}

impl Summary {
    /// Takes in what another file says of the same session.
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.turns = self.turns.max(other.turns);
        // The one of two that is still written has the title that a person has given the session last.
        if self.title.is_empty() || other.updated_ms > self.updated_ms && !other.title.is_empty() {
            self.title = other.title;
        }
        self.updated_ms = self.updated_ms.max(other.updated_ms);
        if self.id.is_empty() {
            (self.store, self.changed) = (other.store, other.changed);
        }
        if self.id.is_empty() || other.created_ms < self.created_ms {
            self.created_ms = other.created_ms;
        }
        if self.folder.is_empty() {
            self.folder = other.folder;
        }
        self.id = other.id;
    }
}
