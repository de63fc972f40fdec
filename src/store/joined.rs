//! States that become one row. Pure.

/// Bytes of states that become one row.
const JOINED_BYTES_MAX: i64 = 16 * 1024 * 1024;

/// The states that follow each other and become one row, of these ordinals and sizes in bytes: a row is read
/// as a whole.
pub(super) fn joinable(sizes: &[(i64, i64)]) -> Vec<&[(i64, i64)]> {
    let mut groups = Vec::new();
    let mut rest = sizes;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |(_, size): &&(i64, i64)| {
            bytes += size;
            bytes <= JOINED_BYTES_MAX
        };
        // One that is too large stays by itself.
        let count = rest.iter().take_while(fits).count().max(1);
        let (group, after) = rest.split_at(count);
        groups.push(group);
        rest = after;
    }
    groups.retain(|group: &&[(i64, i64)]| group.len() > 1);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_joined_as_far_as_they_fit_into_a_row() {
        let most = JOINED_BYTES_MAX;
        for (sizes, expected) in [
            (&[][..], &[][..]),
            (&[1], &[]),
            (&[1, 2, 3], &[(0, 2)]),
            (&[most, 1, 1], &[(1, 2)]),
            (&[1, most - 1, 1, 1], &[(0, 1), (2, 3)]),
            (&[most + 1, most + 1], &[]),
            (&[1, most + 1, 1, 1, most], &[(2, 3)]),
        ] {
            let sizes: Vec<_> = (0..).zip(sizes.iter().copied()).collect();
            let ends = |group: &[(i64, i64)]| (group[0].0, group[group.len() - 1].0);
            let groups: Vec<_> = joinable(&sizes).into_iter().map(ends).collect();
            assert_eq!(groups, expected, "{sizes:?}");
        }
    }
}
