//! Versions and constraints in the syntax of Go's `Masterminds/semver` v1, which
//! sprig uses: <https://github.com/Masterminds/semver/tree/v1.5.0>.
//!
//! A version may lack its minor and patch numbers and begin with a `v`. Constraints are joined by
//! `,` (and) and `||` (or). Ordering is that of <https://semver.org>, by the crate `semver`.

use semver::{BuildMetadata, Prerelease};
use std::cmp::Ordering;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    number: semver::Version,
    /// The original text.
    pub(super) original: String,
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(out)
    }
}

impl Version {
    /// Parses a version; the error shows an example.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let parts = Parts::read(text).filter(|parts| !parts.has_wildcard());
        let number = parts.and_then(|parts| parts.number());
        let number =
            number.ok_or_else(|| format!("{text:?} is not a version; write one such as 1.2.3"))?;
        Ok(Self { number, original: text.to_owned() })
    }

    pub(super) fn major(&self) -> u64 {
        self.number.major
    }

    pub(super) fn minor(&self) -> u64 {
        self.number.minor
    }

    pub(super) fn patch(&self) -> u64 {
        self.number.patch
    }

    pub(super) fn prerelease(&self) -> &str {
        &self.number.pre
    }

    pub(super) fn metadata(&self) -> &str {
        &self.number.build
    }

    /// Compares two versions; metadata is ignored.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.number.cmp_precedence(&other.number)
    }

    /// Whether the version satisfies a constraint such as `>= 1.2, < 2.0 || ~3.1`.
    pub(super) fn satisfies(&self, constraint: &str) -> Result<bool, String> {
        let mut is_satisfied = false;
        for all in constraint.split("||") {
            let mut is_whole = true;
            for one in all.split(',') {
                // Only the whole constraint is shown: of a secret, a part would not be recognized.
                let comparisons = comparisons(one).ok_or_else(|| {
                    let shown = constraint.trim();
                    format!(
                        "{shown:?} is not a constraint; write one such as >= 1.2, ^1.2.3 or 1.x"
                    )
                })?;
                for (operator, version) in comparisons {
                    is_whole &= is_met(operator, &version, &self.number);
                }
            }
            is_satisfied |= is_whole;
        }
        Ok(is_satisfied)
    }
}

/// Operators of constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// The operators; of two that match, the first is used.
const OPERATORS: [(&str, Operator); 11] = [
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("!=", Operator::NotEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

/// One comparison, or the two of a range `1.2 - 2.0`.
fn comparisons(text: &str) -> Option<Vec<(Operator, Bound)>> {
    if let Some((low, high)) = text.split_once(" - ") {
        let (low, high) = (Bound::read(low)?, Bound::read(high)?);
        return Some(vec![(Operator::GreaterOrEqual, low), (Operator::LessOrEqual, high)]);
    }
    let text = text.trim();
    let found = OPERATORS
        .iter()
        .find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*operator, rest)));
    let (operator, version) = found.unwrap_or((Operator::Equal, text));
    Some(vec![(operator, Bound::read(version)?)])
}

/// A version in a constraint, whose numbers may be wildcards.
struct Bound {
    number: semver::Version,
    is_minor_open: bool,
    is_patch_open: bool,
    /// Whether a wildcard makes an equality a range: `1.2` alone does not.
    is_open: bool,
}

impl Bound {
    fn read(text: &str) -> Option<Self> {
        let parts = Parts::read(text.trim())?;
        let is_wild = |part: Option<&str>| part.is_some_and(is_wildcard);
        let is_all_open = is_wildcard(parts.major);
        let is_minor_open = !is_all_open && (is_wild(parts.minor) || parts.minor.is_none());
        let is_patch_open = !is_all_open && !is_minor_open && is_wild(parts.patch);
        let number = parts.floor().number()?;
        let is_open = is_all_open || is_minor_open || is_patch_open;
        Some(Self { number, is_minor_open, is_patch_open, is_open })
    }
}

fn is_met(operator: Operator, bound: &Bound, version: &semver::Version) -> bool {
    // A pre-release only matches a constraint that has one.
    let is_refused = !version.pre.is_empty() && bound.number.pre.is_empty();
    let order = version.cmp_precedence(&bound.number);
    match operator {
        Operator::NotEqual if !bound.is_open => order.is_ne(),
        Operator::NotEqual => {
            !is_refused
                && (version.major != bound.number.major
                    || version.minor != bound.number.minor && !bound.is_minor_open)
        }
        _ if is_refused => false,
        Operator::Equal if !bound.is_open => order.is_eq(),
        Operator::Equal | Operator::Tilde => is_near(bound, version, order),
        Operator::Caret => order.is_ge() && version.major == bound.number.major,
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less if !bound.is_open => order.is_lt(),
        Operator::LessOrEqual if !bound.is_open => order.is_le(),
        Operator::Less | Operator::LessOrEqual => {
            version.major <= bound.number.major
                && (version.minor <= bound.number.minor || bound.is_minor_open)
        }
    }
}

/// `~`: at least this version, with the same major and minor numbers. `~0.0.0` is every version.
fn is_near(bound: &Bound, version: &semver::Version, order: Ordering) -> bool {
    let zero = (bound.number.major, bound.number.minor, bound.number.patch) == (0, 0, 0);
    let is_any = zero && !bound.is_minor_open && !bound.is_patch_open;
    order.is_ge()
        && (is_any
            || version.major == bound.number.major
                && (version.minor == bound.number.minor || bound.is_minor_open))
}

fn is_wildcard(part: &str) -> bool {
    matches!(part, "x" | "X" | "*")
}

/// The parts of a version's text.
struct Parts<'t> {
    major: &'t str,
    minor: Option<&'t str>,
    patch: Option<&'t str>,
    pre: &'t str,
    build: &'t str,
}

impl<'t> Parts<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        let (text, pre) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        let mut numbers = text.split('.');
        let major = numbers.next()?;
        let (minor, patch) = (numbers.next(), numbers.next());
        let is_number = |part: &&str| {
            is_wildcard(part) || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_whole = [Some(major), minor, patch].iter().flatten().all(is_number);
        let has_words = |words: Option<&str>| words != Some("");
        let is_version = is_whole && numbers.next().is_none() && has_words(pre) && has_words(build);
        let (pre, build) = (pre.unwrap_or_default(), build.unwrap_or_default());
        is_version.then_some(Self { major, minor, patch, pre, build })
    }

    fn has_wildcard(&self) -> bool {
        [Some(self.major), self.minor, self.patch].into_iter().flatten().any(is_wildcard)
    }

    /// The lowest version that matches its wildcards.
    fn floor(mut self) -> Self {
        if is_wildcard(self.major) {
            return Self { major: "0", minor: None, patch: None, pre: "", build: "" };
        }
        if self.minor.is_none_or(is_wildcard) {
            (self.minor, self.patch) = (None, None);
        }
        self.patch = self.patch.filter(|patch| !is_wildcard(patch));
        self
    }

    fn number(&self) -> Option<semver::Version> {
        let part = |part: Option<&str>| part.map_or(Some(0), |part| part.parse().ok());
        Some(semver::Version {
            major: part(Some(self.major))?,
            minor: part(self.minor)?,
            patch: part(self.patch)?,
            pre: Prerelease::new(self.pre).ok()?,
            build: BuildMetadata::new(self.build).ok()?,
        })
    }
}
