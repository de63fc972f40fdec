//! Fail points: a test can plant a failure at one of them, to check that it affects only what it
//! must. Only debug builds allow it.

/// Sites of fail points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Reading a request line.
    Decode,
    /// Applying an event to the projections.
    Project,
    /// Encoding a frame.
    Encode,
    /// Writing to standard output.
    Write,
    /// In the engine, while it answers.
    Engine,
    /// Handing events to the store.
    Persist,
    /// A statement of the store that writes.
    Store,
    /// Drawing the screen of a chat.
    Draw,
}

/// Counts the steps to a planted failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailPoint(Option<u32>);

/// At most one planted failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Option<(Place, u32)>);

impl Place {
    /// The site with that name, in lower case.
    #[cfg(debug_assertions)]
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "decode" => Some(Self::Decode),
            "project" => Some(Self::Project),
            "encode" => Some(Self::Encode),
            "write" => Some(Self::Write),
            "engine" => Some(Self::Engine),
            "persist" => Some(Self::Persist),
            "store" => Some(Self::Store),
            "draw" => Some(Self::Draw),
            _ => None,
        }
    }
}

impl Faults {
    /// A failure at the `nth` step at `place`, from 1.
    pub fn new(place: Place, nth: u32) -> Self {
        Self(Some((place, nth)))
    }

    /// The fail point for one site.
    pub(crate) fn at(&self, place: Place) -> FailPoint {
        FailPoint(self.0.filter(|(planted, _)| *planted == place).map(|(_, nth)| nth))
    }
}

impl FailPoint {
    /// Counts a step; true if the failure is planted here.
    #[must_use]
    pub(crate) fn is_tripped(&mut self) -> bool {
        self.0 = self.0.map(|steps| steps.saturating_sub(1));
        self.0.take_if(|steps| *steps == 0).is_some()
    }

    /// Counts a step; panics if the failure is planted here.
    pub(crate) fn step(&mut self) {
        assert!(!self.is_tripped(), "planted fault");
    }
}
