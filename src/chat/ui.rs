//! Backend events → UI events.
