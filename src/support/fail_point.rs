//! Planted faults: places that a test can make fail, to see that a defect there costs only what it
//! must. Only debug builds can be told to plant one.

/// Where a fault can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Reading a request line.
    Decode,
    /// Taking an event into the projections.
    Project,
    /// Encoding a frame.
    Encode,
    /// Writing to standard output.
    Write,
    /// In the engine, while it answers.
    Engine,
}

/// A count of steps to a planted fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailPoint(Option<u32>);

/// At most one planted fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(Option<(Place, u32)>);

impl Place {
    /// The place with that name, in lower case.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "decode" => Some(Self::Decode),
            "project" => Some(Self::Project),
            "encode" => Some(Self::Encode),
            "write" => Some(Self::Write),
            "engine" => Some(Self::Engine),
            _ => None,
        }
    }
}

impl Plan {
    /// A fault at the `nth` time that `place` is passed, from 1.
    pub fn new(place: Place, nth: u32) -> Self {
        Self(Some((place, nth)))
    }

    /// The tripwire for one place.
    pub fn at(&self, place: Place) -> FailPoint {
        FailPoint(self.0.filter(|(planted, _)| *planted == place).map(|(_, nth)| nth))
    }
}

impl FailPoint {
    /// Counts a step; true if the fault is planted here.
    #[must_use]
    pub fn is_tripped(&mut self) -> bool {
        self.0 = self.0.map(|steps| steps.saturating_sub(1));
        let is_here = self.0 == Some(0);
        if is_here {
            self.0 = None;
        }
        is_here
    }

    /// Counts a step; panics if the fault is planted here.
    pub fn step(&mut self) {
        assert!(!self.is_tripped(), "planted fault");
    }
}
