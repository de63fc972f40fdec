//! Patterns over names: `*` is any number of characters, `?` is one.

/// Whether the whole of `name` fits `pattern`. Takes at most as many steps as the product of the lengths:
/// only the last `*` is ever given another try.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // The place after the last star, and the first character that it does not cover yet.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                p += 1;
                star = Some((p, n));
            }
            (Some(c), _) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            (_, Some((after, covered))) => {
                p = after;
                n = covered + 1;
                star = Some((after, n));
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
