//! Functions on versions: <https://masterminds.github.io/sprig/semver.html>.

use super::{Function, function};
use crate::template::semver::Version;
use crate::template::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    function("semver", (1, 1), |call| Ok(Value::Version(Version::read(call.text(0)?)?.into()))),
    function("semverCompare", (2, 2), |call| {
        let (constraint, version) = (call.text(0)?, Version::read(call.text(1)?)?);
        Ok(Value::Bool(version.satisfies(constraint)?))
    }),
];
