//! The languages whose code is coloured: their comments, quotes and keywords.

/// What the lexer knows of a language, or of several that are alike in this.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Language {
    /// What may follow the fence of a block, in lower case, separated by single spaces.
    names: &'static str,
    /// What begins a comment up to the end of the line.
    pub(super) comments: &'static [&'static str],
    /// What begins and ends any other comment.
    pub(super) block: Option<(&'static str, &'static str)>,
    /// Longer ones precede their prefixes.
    pub(super) quotes: &'static [Quote],
    /// Separated by single spaces.
    pub(super) keywords: &'static str,
    /// Characters that words may have besides letters, digits and `_`.
    pub(super) extra: &'static str,
    /// Characters that follow a key.
    pub(super) keys: &'static str,
    /// Whether keywords may be written in capitals.
    pub(super) folds: bool,
    /// Whether a word with a capital letter is likely a type.
    pub(super) has_types: bool,
    pub(super) is_markup: bool,
    pub(super) is_diff: bool,
}

/// A kind of text in quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether `\` takes the next character out of its meaning.
    pub(super) escapes: bool,
    pub(super) kind: QuoteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteKind {
    /// Ends with the line at the latest.
    Line,
    /// May span lines.
    Lines,
    /// Is one only if it is closed in the line, and no word ends at it: an apostrophe may be meant.
    Closed,
    /// Holds one character.
    Character,
    /// The value of an attribute of markup.
    AfterEquals,
}

/// Words that are values in most languages.
pub(super) const CONSTANTS: &str =
    "true false null nil none None True False TRUE FALSE NULL undefined nullptr NaN";

const fn quote(open: &'static str, close: &'static str, escapes: bool, kind: QuoteKind) -> Quote {
    Quote { open, close, escapes, kind }
}

const DOUBLE: Quote = quote("\"", "\"", true, QuoteKind::Line);
const SINGLE: Quote = quote("'", "'", true, QuoteKind::Closed);
const CHARACTER: Quote = quote("'", "'", true, QuoteKind::Character);
const TRIPLE: Quote = quote("\"\"\"", "\"\"\"", true, QuoteKind::Lines);
const TRIPLE_SINGLE: Quote = quote("'''", "'''", true, QuoteKind::Lines);
const BACKTICKS: Quote = quote("`", "`", true, QuoteKind::Lines);
const RAW_BACKTICKS: Quote = quote("`", "`", false, QuoteKind::Lines);
const SHELL_DOUBLE: Quote = quote("\"", "\"", true, QuoteKind::Lines);
const LITERAL: Quote = quote("'", "'", false, QuoteKind::Closed);
const ATTRIBUTE: Quote = quote("\"", "\"", false, QuoteKind::AfterEquals);

/// A language like C; the others say what is different.
const BASE: Language = Language {
    names: "",
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &[DOUBLE, CHARACTER],
    keywords: "",
    extra: "",
    keys: "",
    folds: false,
    has_types: true,
    is_markup: false,
    is_diff: false,
};

/// A language whose comments begin with `#`.
const HASH: Language =
    Language { comments: &["#"], block: None, quotes: &[DOUBLE, SINGLE], ..BASE };

/// Keys and values.
const DATA: Language =
    Language { quotes: &[DOUBLE, LITERAL], extra: "-.", keys: ":", has_types: false, ..HASH };

static LANGUAGES: [Language; 29] = [
    Language {
        names: "rust rs",
        quotes: &[quote("r#\"", "\"#", false, QuoteKind::Lines), SHELL_DOUBLE, CHARACTER],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in \
                   let loop match mod move mut pub ref return self Self static struct super trait type \
                   union unsafe use where while yield",
        ..BASE
    },
    Language {
        names: "python py python3 pycon",
        quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        keywords: "and as assert async await break case class continue def del elif else except \
                   finally for from global if import in is lambda match nonlocal not or pass raise \
                   return self try while with yield",
        extra: "@",
        ..HASH
    },
    Language {
        names: "javascript js jsx mjs cjs node typescript ts tsx vue svelte",
        quotes: &[DOUBLE, SINGLE, BACKTICKS],
        keywords: "abstract any as async await boolean break case catch class const continue debugger \
                   declare default delete do else enum export extends finally for from function get if \
                   implements import in instanceof interface keyof let namespace never new of private \
                   protected public readonly return set static super switch this throw try type typeof \
                   unknown var void while yield",
        extra: "$@",
        ..BASE
    },
    Language {
        names: "java kotlin kt kts scala groovy gradle",
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        keywords: "abstract as assert boolean break by byte case catch char class companion const \
                   continue data def default do double else enum extends extension final finally float \
                   for fun given if implements import in init inner instanceof int interface internal \
                   is lateinit lazy long match native new object open operator override package private \
                   protected public record return sealed short static super suspend switch \
                   synchronized this throw throws trait transient try type val var void volatile when \
                   while with yield",
        extra: "@",
        ..BASE
    },
    Language {
        names: "c h cpp c++ cc cxx hpp objc objective-c cuda arduino",
        comments: &["//", "#include", "#pragma", "#define", "#if", "#end", "#else", "#undef"],
        keywords: "alignas auto bool break case catch char class concept const consteval constexpr \
                   continue default delete do double else enum explicit export extern final float for \
                   friend goto if inline int long mutable namespace new noexcept operator override \
                   private protected public register requires restrict return short signed sizeof \
                   static static_cast struct switch template this throw try typedef typename union \
                   unsigned using virtual void volatile while",
        ..BASE
    },
    Language {
        names: "csharp cs c# fsharp fs dart",
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        keywords: "abstract as async await base bool break byte case catch char class const continue \
                   decimal default delegate do double dynamic else enum event explicit extends extension \
                   factory final finally float for foreach get if implements import in int interface \
                   internal is late let lock long match mixin module mutable namespace new object of \
                   open operator out override params private protected public readonly record ref \
                   required return sealed set short static string struct super switch this throw try \
                   type typeof uint using var virtual void when where while with yield",
        ..BASE
    },
    Language {
        names: "go golang",
        quotes: &[DOUBLE, CHARACTER, RAW_BACKTICKS],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if \
                   import interface map package range return select struct switch type var",
        ..BASE
    },
    Language {
        names: "swift",
        quotes: &[TRIPLE, DOUBLE],
        keywords: "actor any as async await break case catch class continue default defer deinit do \
                   else enum extension fallthrough fileprivate final for func guard if import in init \
                   inout internal is lazy let mutating nonisolated open operator override private \
                   protocol public repeat rethrows return self Self some static struct subscript super \
                   switch throw throws try typealias unowned var weak where while",
        extra: "@",
        ..BASE
    },
    Language {
        names: "zig",
        quotes: &[DOUBLE, CHARACTER],
        keywords: "and anytype break catch comptime const continue defer else enum errdefer error export \
                   extern fn for if inline or orelse packed pub return struct switch test try union \
                   unreachable usingnamespace var volatile while",
        extra: "@",
        ..BASE
    },
    Language {
        names: "php",
        comments: &["//", "#"],
        quotes: &[DOUBLE, SINGLE],
        keywords: "abstract and as break case catch class clone const continue declare default do echo \
                   else elseif enum extends final finally fn for foreach function global if implements \
                   include instanceof interface isset match namespace new or print private protected \
                   public readonly require require_once return static switch throw trait try unset use \
                   var while yield",
        extra: "$",
        ..BASE
    },
    Language {
        names: "ruby rb crystal",
        keywords: "alias and begin break case class def defined do else elsif end ensure for if in \
                   include module next not or private protected public raise redo require \
                   require_relative rescue retry return self super then undef unless until when while \
                   yield",
        extra: "@$?",
        ..HASH
    },
    Language {
        names: "bash sh shell zsh fish console shellscript shell-session",
        quotes: &[SHELL_DOUBLE, LITERAL],
        keywords: "case do done elif else esac exec exit export fi for function if in local readonly \
                   return select set shift source then trap unset until while",
        extra: "$-",
        has_types: false,
        ..HASH
    },
    Language {
        names: "powershell pwsh ps1",
        block: Some(("<#", "#>")),
        keywords: "begin break catch class continue do else elseif end enum exit filter finally for \
                   foreach function if in param process return switch throw trap try until using while",
        extra: "$-",
        folds: true,
        has_types: false,
        ..HASH
    },
    Language {
        names: "perl pl raku",
        keywords: "and cmp die do each else elsif eq for foreach given if keys last local my ne next no \
                   not or our package print push redo require return say shift sub unless until use \
                   values wantarray when while",
        extra: "$@%",
        ..HASH
    },
    Language {
        names: "r julia jl",
        block: Some(("#=", "=#")),
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        keywords: "abstract baremodule begin break catch const do else elseif end export finally for \
                   function global if import in let library local macro module mutable next primitive \
                   quote repeat require return struct try type using where while",
        ..HASH
    },
    Language {
        names: "elixir ex exs",
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        keywords: "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol \
                   defstruct do else end fn for if import in not or quote raise receive require rescue \
                   try unless unquote use when with",
        extra: "@?",
        ..HASH
    },
    Language {
        names: "nix",
        block: Some(("/*", "*/")),
        quotes: &[quote("''", "''", false, QuoteKind::Lines), SHELL_DOUBLE],
        keywords: "assert else if import in inherit let or rec then with",
        extra: "-",
        has_types: false,
        ..HASH
    },
    Language {
        names: "lua luau",
        comments: &["--"],
        block: Some(("--[[", "]]")),
        quotes: &[quote("[[", "]]", false, QuoteKind::Lines), DOUBLE, SINGLE],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then \
                   until while",
        ..BASE
    },
    Language {
        names: "haskell hs elm purescript",
        comments: &["--"],
        block: Some(("{-", "-}")),
        keywords: "case class data deriving do else foreign if import in infix infixl infixr instance let \
                   module newtype of qualified then type where",
        ..BASE
    },
    Language {
        names: "ocaml ml sml",
        comments: &[],
        block: Some(("(*", "*)")),
        keywords: "and as begin class do done else end exception external for fun function functor if in \
                   include let match method module mutable new object of open rec sig struct then to try \
                   type val when while with",
        ..BASE
    },
    Language {
        names: "clojure clj lisp elisp scheme racket",
        comments: &[";"],
        block: None,
        quotes: &[SHELL_DOUBLE],
        keywords: "and case cond def define defmacro defn defun defvar do fn for if lambda let let* loop \
                   ns or progn quote recur require set! setq use when",
        extra: "-*!?",
        has_types: false,
        ..BASE
    },
    Language {
        names: "sql postgresql postgres mysql sqlite plsql tsql",
        comments: &["--"],
        quotes: &[LITERAL, quote("\"", "\"", false, QuoteKind::Line)],
        keywords: "add all alter and as asc begin between by case check column commit constraint create \
                   cross database default delete desc distinct drop else end exists foreign from full \
                   function group having if in index inner insert into is join key left like limit not \
                   null offset on or order outer over partition primary references returning right \
                   rollback select set table then transaction trigger union unique update using values \
                   view when where with",
        folds: true,
        has_types: false,
        ..BASE
    },
    Language { names: "json jsonc json5 jsonl ndjson", quotes: &[DOUBLE], keys: ":", ..BASE },
    Language { names: "yaml yml", quotes: &[DOUBLE, LITERAL], ..DATA },
    Language {
        names: "toml ini conf cfg properties env dotenv editorconfig",
        comments: &["#", ";"],
        quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, LITERAL],
        keys: "=",
        ..DATA
    },
    Language {
        names: "dockerfile docker makefile make cmake hcl terraform tf nginx just",
        keywords: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL USER VOLUME \
                   WORKDIR AS data else endif ifeq ifdef include location locals module output provider \
                   resource server set variable",
        extra: "-$",
        has_types: false,
        ..HASH
    },
    Language {
        names: "css scss sass less",
        comments: &["//"],
        quotes: &[DOUBLE, LITERAL],
        keywords: "and from in not only or to",
        extra: "-@$",
        keys: ":",
        has_types: false,
        ..BASE
    },
    Language {
        names: "html xml svg xhtml xsl plist astro",
        comments: &[],
        block: Some(("<!--", "-->")),
        quotes: &[ATTRIBUTE],
        extra: "-:",
        is_markup: true,
        ..BASE
    },
    Language { names: "diff patch", is_diff: true, ..BASE },
];

/// The language that is called `name`, in any case.
pub(super) fn find(name: &str) -> Option<&'static Language> {
    let is_called = |it: &&Language| it.names.split(' ').any(|it| it.eq_ignore_ascii_case(name));
    LANGUAGES.iter().find(is_called)
}

#[cfg(test)]
pub(super) fn all_names() -> Vec<&'static str> {
    LANGUAGES.iter().flat_map(|it| it.names.split(' ')).filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_means_one_language() {
        let mut names = all_names();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|it| *it == it.to_lowercase()));
        for language in &LANGUAGES {
            let words: Vec<_> = language.keywords.split(' ').collect();
            assert!(words == [""] || !words.contains(&""), "{:?}", language.names);
        }
    }
}
