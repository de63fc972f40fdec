//! Every function, with what its documentation says it gives.

use super::{check, check_errors};

#[test]
fn gos_own() {
    check(&[
        (
            "{{eq 1 2 1}} {{ne 1 1}} {{lt 1 2}} {{le 2 2}} {{gt 1.5 2.5}} {{ge \"b\" \"a\"}}",
            "true false true true false true",
        ),
        (
            "{{eq .nil nil}} {{eq .list nil}} {{eq .missing nil}} {{ne .n 4}}",
            "true false true true",
        ),
        ("{{and 1 0 2}} {{and 1 2}} {{or 0 \"x\"}} {{or 0 \"\"}}| {{not 0}}", "0 2 x | true"),
        (
            "{{and false (index .none 5)}} {{or true (index .none 5)}} {{.n | and 1}}",
            "false true 3",
        ),
        (
            "{{print 1 2 \"a\" \"b\" 3 4.0 nil}} {{print}}{{println \"a\" 1}}",
            "1 2ab3 4 <nil> a 1\n",
        ),
        ("{{len .name}} {{len .list}} {{len .m}} {{len .uni}}", "3 3 3 13"),
        (
            "{{index .list 1}} {{index .m \"c\" \"z\" 1}} {{index .m \"q\"}} {{index .name 0}}",
            "b 2 <no value> 65",
        ),
        (
            "{{slice .list 1}} {{slice .list 1 2}} {{slice .name 1}} {{slice .list 0 1 2}}",
            "[b c] [b] da [a]",
        ),
        (
            "{{range slice (list) 0 3}}x{{end}}ok {{slice (list)}} {{mustSlice (list) 1}}",
            "ok <no value> <no value>",
        ),
        (
            "{{html \"<a&'\\\">\"}} {{js \"it's\"}} {{urlquery \"a b&c\"}}",
            "&lt;a&amp;&#39;&#34;&gt; it\\'s a+b%26c",
        ),
    ]);
}

#[test]
fn printf() {
    check(&[
        (
            r#"{{printf "%5d|%-5d|%05d|%+d|%x|%X|%o|%b|%c|%U" 42 42 42 42 255 255 8 5 65 65}}"#,
            "   42|42   |00042|+42|ff|FF|10|101|A|U+0041",
        ),
        (
            r#"{{printf "%f %.2f %e %g %8.3f|%-8.2f|" 1.5 2.345 12345.678 1e21 3.14159 2.5}}"#,
            "1.500000 2.35 1.234568e+04 1e+21    3.142|2.50    |",
        ),
        (
            r#"{{printf "%s %v %q %t %T %%" "a" .list "q\"" true .m}}"#,
            r#"a [a b c] "q\"" true map[string]interface {} %"#,
        ),
        (
            r#"{{printf "%q %d %5s|%-5s|%.2s|" .list .nums "ab" "ab" "abc"}}"#,
            r#"["a" "b" "c"] [3 1 2]    ab|ab   |ab|"#,
        ),
        (
            r#"{{printf "%[2]d %[1]d|" 1 2}}{{printf "%*d %-*d|" 5 42 4 7}}{{printf "%*d" "a" 3}}"#,
            "2 1|   42 7   |%!(BADWIDTH)3",
        ),
        (
            r#"{{printf "%d %s" "x" 3}} {{printf "%d"}} {{printf "x" 1}} {{printf "%!"}} {{printf "%"}}"#,
            "%!d(string=x) %!s(int=3) %!d(MISSING) x%!(EXTRA int=1) %!!(MISSING) %!(NOVERB)",
        ),
        (r#"{{printf "%+v %+v %+g %+d %+v" 5.5 -5.5 5.5 5 5}}"#, "5.5 -5.5 +5.5 +5 5"),
        (
            r#"{{$l := list nil "a"}}{{printf "%s|%d|%q|%5v|%t|%s" $l (dict "n" nil "z" 1) $l $l $l (list (list nil))}}"#,
            "[<nil> a]|map[%!d(string=n):<nil> %!d(string=z):1]|[<nil> \"a\"]|[<nil>     a]|\
             [<nil> %!t(string=a)]|[[<nil>]]",
        ),
        (
            r#"{{printf "%+q|%+q|%#+q|%+q" "héllo😀\u200b" "a\tb" "é" 'é'}}"#,
            r#""h\u00e9llo\U0001f600\u200b"|"a\tb"|`é`|'\u00e9'"#,
        ),
        (
            r#"{{printf "%#g|%#g|%#g|%#.3g|%#g|%#e|%#.0f|%#g|%#G|%#.3g|%#g" 1.0 0.0 1.5 1.0 1e21 1.0 2.0 0.00012 1e-7 123456.0 -2.5}}"#,
            "1.00000|0.00000|1.50000|1.00|1.00000e+21|1.000000e+00|2.|0.000120000|1.00000E-07|\
             1.23e+05|-2.50000",
        ),
        (
            r#"{{printf "%#U|%#U|%#U|%10U|%-10U|%010U|%.6U|%#.6U|%U|%#U" 65 0x1F600 10 65 65 65 65 65 -1 0x110000}}"#,
            "U+0041 'A'|U+1F600 '😀'|U+000A|    U+0041|U+0041    |    U+0041|U+000041|\
             U+000041 'A'|U+FFFFFFFFFFFFFFFF|U+110000",
        ),
        (
            r#"{{printf "%#08x|%08x|%#08b|%#08o|%#o|%#o|%#010X|%+#08x|%#8x|%-#8x|% #08x|%08O|%O" 255 255 5 8 8 0 255 255 255 255 255 8 8}}"#,
            "0x000000ff|000000ff|0b00000101|00000010|010|0|0X00000000FF|+0x00000ff|    0xff|\
             0xff    | 0x00000ff|0o00000010|0o10",
        ),
        (
            r#"{{printf "%#08x|%.0d|%5.0d|%#.0x|%#.3x|%#x|%+.0d|%.0O|%#.4o" -255 0 0 0 5 0 0 0 8}}"#,
            "-0x00000ff||     ||0x005|0x0|||0010",
        ),
        (
            r#"{{printf "%[x]d %d" 1 2}}|{{printf "%[1d" 1}}|{{printf "%[]d" 1}}|{{printf "%[+1]d" 1}}"#,
            "%!d(BADINDEX) 1|%!d(BADINDEX)|%!d(BADINDEX)|%!d(BADINDEX)",
        ),
        (
            r#"{{printf "%v %s %x %#x %06.2f %x % x" nil nil "hi" 255 1.5 -255 "hi"}}"#,
            "<nil> %!s(<nil>) 6869 0xff 001.50 -ff 68 69",
        ),
        (r#"{{printf "%q %q" 65 "a\n\x01\u200b"}}"#, r#"'A' "a\n\x01\u200b""#),
    ]);
}

#[test]
fn text() {
    check(&[
        (
            r#"{{trim "  a "}}|{{trimAll "$" "$5$"}}|{{trimPrefix "-" "-a"}}|{{trimSuffix "-" "a-"}}|{{upper "aé"}}|{{lower "AÉ"}}"#,
            "a|5|a|a|AÉ|aé",
        ),
        (
            r#"{{repeat 3 "ab"}}|{{substr 1 3 "hello"}}|{{substr -1 3 "hello"}}|{{substr 1 -1 "hello"}}|{{substr 1 99 "hello"}}|{{nospace " a b "}}"#,
            "ababab|el|hel|ello|ello|ab",
        ),
        (r#"{{trunc 3 "hello"}}|{{trunc -3 "hello"}}|{{trunc 9 "hello"}}"#, "hel|llo|hello"),
        (
            r#"{{contains "ell" "hello"}} {{hasPrefix "he" "hello"}} {{hasSuffix "lo" "hello"}} {{replace "a" "b" "banana"}}"#,
            "true true true bbnbnb",
        ),
        (
            r#"{{dquote "a" 1 nil 1.5 true}} {{squote "a" 1 nil}} {{cat "a" 1 nil "b"}} {{dquote "a\"b\n"}} {{dquote .list}} {{quote "a" 1 nil}} {{quote .list}}"#,
            r#""a" "1" "1.5" "true" 'a' '1' a 1 b "a\"b\n" "[a b c]" `a` `1` `[a b c]`"#,
        ),
        (
            r#"{{indent 2 .multi}}|{{nindent 4 .multi}}|{{indent 2 "a\n\nb"}}"#,
            r#"  line one
  line two
  |
    line one
    line two
    |  a
  
  b"#,
        ),
        (
            r#"{{plural "one" "many" 1}} {{plural "one" "many" 2}} {{len .list | plural "one" "many"}}"#,
            "one many many",
        ),
        (
            r#"{{$p := split "$" "a$b$c"}}{{$p._0}}{{$p._2}} {{$q := splitn "$" 2 "a$b$c"}}{{$q._0}} {{$q._1}} {{splitList "," "a,b,c"}} {{splitList "" "abc"}}"#,
            "ac a b$c [a b c] [a b c]",
        ),
        (
            r#"{{toString 1.5}} {{toString .nil}} {{toStrings .nums}} {{join "," .nums}} {{join "," .mixed}} {{join "," "x"}} {{join "," .none}}{{join "," .nil}} {{.list | join "\n- "}}"#,
            r#"1.5 <nil> [3 1 2] 3,1,2 1,1.5,x,true x  a
- b
- c"#,
        ),
    ]);
}

#[test]
fn words() {
    check(&[
        (
            r#"{{title "hello wORLD o'neil foo_bar a-b"}}|{{untitle "Hello World"}}|{{initials "First Try here"}}"#,
            "Hello WORLD O'Neil Foo_bar A-B|hello world|FTh",
        ),
        (
            r#"{{upper "straße"}} {{lower "İÉ"}} {{title "ßa é"}} {{swapcase "ßÉ"}}"#,
            "STRAßE ié ßa É ßé",
        ),
        (r#"{{abbrev 5 "hello world"}}|{{abbrev 20 "hi"}}|{{abbrev 3 "hello"}}"#, "he...|hi|hello"),
        (
            r#"{{wrap 10 "the quick brown fox jumps over averyveryverylongword ok"}}"#,
            r#"the quick
brown fox
jumps over
averyveryverylongword
ok"#,
        ),
        (
            r#"{{wrap 5 ""}}|{{wrap 3 "a b c d e f"}}|{{wrap 5 "  leading spaces here"}}|{{wrap 80 "short"}}"#,
            r#"|a b
c d
e f|leading
spaces
here|short"#,
        ),
        (
            r#"{{wrapWith 5 "\t" "Hello World averylongword x"}}"#,
            "Hello\tWorld\tavery\tlongw\tord x",
        ),
        (r#"{{wrapWith 5 "" "aa bb cc"}}"#, "aa bb\ncc"),
        (
            r#"{{snakecase "FirstName"}} {{snakecase "HTTPServer"}} {{snakecase "hello world"}} {{snakecase "foo-bar"}} {{snakecase "noHTTPS"}} {{snakecase "id1"}}"#,
            "first_name http_server hello_world foo_bar no_https id1",
        ),
        (
            r#"{{camelcase "http_server"}} {{camelcase "hello_world foo"}} {{camelcase "_foo_bar_"}} {{camelcase "fooBar"}} {{camelcase "HTTPServer"}}"#,
            "httpServer helloWorldFoo _fooBar_ fooBar httpserver",
        ),
        (
            r#"{{kebabcase "FirstName"}} {{kebabcase "HTTPServer"}} {{kebabcase "hello world"}}"#,
            "first-name http-server hello-world",
        ),
    ]);
}

#[test]
fn lists() {
    check(&[
        (
            r#"{{list 1 "a" 2.5}} {{tuple 1}} {{first .list}} {{last .list}} {{rest .list}} {{initial .list}} {{append .list "d"}} {{push .list "d"}} {{prepend .list "z"}}"#,
            "[1 a 2.5] [1] a c [b c] [a b] [a b c d] [a b c d] [z a b c]",
        ),
        (
            r#"{{concat .list .nums}} {{reverse .list}} {{uniq (list 1 1 2 "a" "a")}} {{without .list "b"}} {{has "a" .list}} {{has 4 .nums}} {{compact (list 1 0 "" "a" nil)}}"#,
            "[a b c 3 1 2] [c b a] [1 2 a] [a c] true false [1 a]",
        ),
        (
            r#"{{first .none}}|{{last .none}}|{{rest .none}}|{{initial .none}}|{{range chunk 2 .list}}[{{.}}]{{end}} {{sortAlpha (list "c" "a" 2)}}"#,
            "<no value>|<no value>|[]|[]|[[a b]][[c]] [2 a c]",
        ),
        (
            "{{until 5}} {{until 0}} {{until -3}} {{untilStep 3 6 2}} {{untilStep 5 0 -2}} {{untilStep 1 5 0}}",
            "[0 1 2 3 4] [] [0 -1 -2] [3 5] [5 3 1] []",
        ),
        (
            "{{seq 5}} {{seq -3}} {{seq 0 2}} {{seq 2 -2}} {{seq 0 2 10}} {{seq 0 -2 -5}} {{seq}} {{seq 0 -2 5}} {{seq 3 3}} {{seq 0}}",
            "1 2 3 4 5 1 0 -1 -2 -3 0 1 2 2 1 0 -1 -2 0 2 4 6 8 10 0 -2 -4   3 1 0",
        ),
        (
            r#"{{empty ""}} {{empty 0}} {{empty .list}} {{coalesce "" 0 "x"}} {{coalesce nil ""}} {{ternary "a" "b" true}} {{.t | ternary "y" "n"}} {{all 1 2}} {{any 0 1}}"#,
            "true true false x <no value> a y true true",
        ),
        (
            r#"{{default "d" .missing}} {{default "d" ""}} {{default "d" "x"}} {{.nil | default 5}} {{default "d" 0}} {{default "d" false}} {{default "x"}}"#,
            "d d x 5 d d x",
        ),
        (
            "{{kindOf .n}} {{kindOf .f}} {{kindOf .name}} {{kindOf .list}} {{kindOf .m}} {{kindOf .t}} {{kindOf .nil}} {{typeOf .n}} {{typeOf .list}} {{typeOf .m}} {{typeOf .nil}}",
            "int float64 string slice map bool invalid int []interface {} map[string]interface {} <nil>",
        ),
        (
            r#"{{kindIs "string" .name}} {{typeIs "string" .name}} {{deepEqual .list (list "a" "b" "c")}} {{deepEqual .m .m}} {{deepEqual 1 1.0}}"#,
            "true true true true false",
        ),
    ]);
}

#[test]
fn maps() {
    check(&[
        (
            r#"{{$d := dict "a" 1 "b" "x"}}{{$d}} {{get $d "a"}} {{get $d "zz"}}| {{$_ := set $d "c" 3}}{{$d}} {{$_ := unset $d "a"}}{{$d}} {{hasKey $d "b"}} {{hasKey $d "q"}} {{keys $d | sortAlpha}} {{dict}} {{dict "a"}}"#,
            "map[a:1 b:x] 1 | map[a:1 b:x c:3] map[b:x c:3] true false [b c] map[] map[a:]",
        ),
        (
            r#"{{pick .m "a" "b"}} {{omit .m "c"}} {{pluck "a" .m (dict "a" 9) (dict "b" 1)}} {{values (dict "a" 1)}}"#,
            "map[a:1 b:2] map[a:1 b:2] [1 9] [1]",
        ),
        (
            r#"{{dig "c" "z" "def" .m}} {{dig "c" "nope" "def" .m}} {{dig "x" "def" .m}}"#,
            "[1 2] def def",
        ),
        (
            r#"{{merge (dict "a" 1) (dict "a" 2 "b" 3)}} {{merge (dict "a" (dict "x" 1)) (dict "a" (dict "y" 2))}} {{merge (dict "a" 0 "s" "") (dict "a" 2 "s" "q")}} {{mergeOverwrite (dict "a" 1 "b" 1) (dict "a" 2)}}"#,
            "map[a:1 b:3] map[a:map[x:1 y:2]] map[a:2 s:q] map[a:2 b:1]",
        ),
        (
            r#"{{$a := dict "k" (dict "x" 1)}}{{$b := $a}}{{$c := deepCopy $a}}{{$_ := set $b.k "x" 2}}{{$a}} {{$c}}"#,
            "map[k:map[x:2]] map[k:map[x:1]]",
        ),
    ]);
}

#[test]
fn numbers() {
    check(&[
        (
            r#"{{add 1 2 3}} {{sub 5 2}} {{mul 2 3 4}} {{div 7 2}} {{mod 7 2}} {{add1 5}} {{max 1 5 3}} {{biggest 1 2}} {{min 4 2 9}} {{div -7 2}} {{mod -7 2}} {{add "1" 2}}"#,
            "6 3 24 3 1 6 5 2 2 -3 -1 <no value>",
        ),
        (
            r#"{{floor 1.7}} {{ceil 1.2}} {{round 3.14159 2}} {{round 2.5 0}} {{floor "3.7"}} {{round -2.5 0}} {{round 123.5555 3 0.6}}"#,
            "1 2 3.14 3 3 -3 123.555",
        ),
        (
            r#"{{int "12"}} {{int 3.9}} {{int "abc"}} {{int64 5}} {{float64 "1.5"}} {{float64 3}} {{atoi "42"}} {{atoi "x"}} {{int true}}"#,
            "12 3 0 5 1.5 3 42 0 1",
        ),
        // Texts as spf13/cast 1.7.0 reads them, which sprig 3.3.0 uses.
        (
            r#"{{int "3.0"}} {{int "-3.00"}} {{int "3."}} {{int "3.5"}} {{int "0x10"}} {{int "0x10.0"}} {{int "010"}} {{int "010.0"}} {{int "08"}} {{int "1_000"}}"#,
            "3 -3 0 0 16 16 8 8 0 1000",
        ),
        (
            r#"{{int "000"}} {{int "-010"}} {{int ".0"}} {{int "3.0.0"}} {{int " 3"}} {{int "1e3"}} {{int64 "-9223372036854775808"}} {{int "9223372036854775808"}}"#,
            "0 -8 0 0 0 0 -9223372036854775808 0",
        ),
        (
            r#"{{add1 "3.0"}} {{max "0x10" 3}} {{min "010" 9}} {{biggest "3.0" 1}} {{mod "010" 5}} {{float64 "0x1p4"}} {{float64 "1_000"}} {{float64 "010"}} {{atoi "010"}} {{atoi "3.0"}}"#,
            "4 16 8 3 3 16 1000 10 10 0",
        ),
        (
            "{{addf 1.5 2}} {{subf 5 1.5}} {{mulf 1.5 2}} {{divf 3 2}} {{maxf 1 2.5}} {{minf 1 2.5}}",
            "3.5 3.5 3 1.5 2.5 1",
        ),
        (
            "{{addf 0.1 0.2}} {{subf 0.3 0.1}} {{mulf 1.1 1.1}} {{mulf 3 0.1}} {{mulf 1.1 1.1 1.1}} {{addf -0.1 0.1}} {{subf 0.1 0.3 0.5}}",
            "0.3 0.2 1.21 0.3 1.331 0 -0.7",
        ),
        (
            "{{divf 1 3}} {{divf -2 3}} {{divf 10 3 3}} {{divf 15 1e17}} {{divf -5 1e17}} {{divf 1 3e20}} {{divf 1 3 | mulf 3}}",
            "0.3333333333333333 -0.6666666666666667 1.1111111111111112 2e-16 -1e-16 0 0.9999999999999999",
        ),
        (
            "{{addf 1e300 1e-300}} {{addf 1e22 0.1}} {{mulf 1e200 1e200}} {{mulf 1e-200 1e-200}} {{divf 1e300 3}} {{addf 123456789.123 0.001}}",
            "1e+300 1e+22 +Inf 0 3.3333333333333335e+299 1.23456789124e+08",
        ),
    ]);
}

#[test]
fn encodings() {
    check(&[
        (
            r#"{{toJson .m}} {{toJson .mixed}} {{toJson "<a&>"}} {{toRawJson "<a&>"}} {{mustToJson 1}} {{toJson 1e21}} {{toJson .one}} {{toJson 0.0000001}} {{toJson "a\n\t\u2028\u0001\\"}} {{toJson nil}} {{toJson .none}}{{toJson .em}}"#,
            r#"{"a":1,"b":2,"c":{"y":null,"z":[1,2]}} [1,1.5,"x",true,null] "\u003ca\u0026\u003e" "<a&>" 1 1e+21 1 1e-7 "a\n\t\u2028\u0001\\" null []{}"#,
        ),
        (
            "{{toPrettyJson .m}} {{toPrettyJson .none}} {{toPrettyJson .files}}",
            r##"{
  "a": 1,
  "b": 2,
  "c": {
    "y": null,
    "z": [
      1,
      2
    ]
  }
} [] [
  {
    "Content": "package main\n",
    "Path": "src/main.go"
  },
  {
    "Content": "# Hi",
    "Path": "README.md"
  }
]"##,
        ),
        (
            r#"{{(fromJson "{\"a\": 1}").a}} {{fromJson "{\"b\": [1, 2.5], \"c\": 10000000}"}} {{mustFromJson "[1, null, \"x\"]"}}"#,
            "1 map[b:[1 2.5] c:1e+07] [1 <nil> x]",
        ),
        (r#"{{fromJson "{"}} {{with fromJson "[1"}}a{{else}}b{{end}}"#, "<no value> b"),
        (
            r#"{{b64dec "aGVs\r\nbG8=\n"}} {{b64dec "YR=="}} {{b64dec "Y Q="}} {{b64dec "!!"}} {{b32dec "ME======\n"}} {{b32dec "me======"}}"#,
            "hello a illegal base64 data at input byte 1 illegal base64 data at input byte 0 a \
             illegal base32 data at input byte 0",
        ),
        (
            r#"{{b64enc "héllo"}} {{b64dec "aGVsbG8="}} {{sha256sum "abc"}}"#,
            "aMOpbGxv hello ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            r#"{{base "a/b.txt"}} {{dir "a/b.txt"}} {{ext "a/b.txt"}} {{clean "a//b/../c/./d"}} {{isAbs "/a"}} {{isAbs "a"}} {{base ""}} {{dir ""}} {{dir "/a"}} {{base "/"}} {{clean ""}} {{clean "/../a"}} {{dir "a/b/"}} {{clean "../../a"}} {{ext "a.b/c"}}| {{base "a/"}}"#,
            "b.txt a .txt a/c/d true false . . / / . /a a/b ../../a | a",
        ),
    ]);
}

#[test]
fn regular_expressions() {
    check(&[
        (
            r#"{{regexMatch "^a.c$" "abc"}} {{mustRegexMatch "x" "y"}} {{regexFind "[0-9]+" "ab12"}} {{regexFind "x" "y"}}|{{regexFindAll "[0-9]+" "a1b22c333" -1}} {{regexFindAll "[0-9]+" "a1b22c333" 2}}"#,
            "true false 12 |[1 22 333] [1 22]",
        ),
        (
            r#"{{regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"}} {{regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W"}} {{mustRegexReplaceAll "a" "ba" "c"}} {{regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}"}}"#,
            "-W-xxW- --- bc -${1}-${1}-",
        ),
        (
            r#"{{regexSplit "z+" "pizza" -1}} {{regexSplit "," "a,b,c" 2}} {{regexSplit "," "a,b" 0}} {{regexFindAll "a" "aaa" 0}} {{regexQuoteMeta "1.2*3-4"}}"#,
            r#"[pi a] [a b,c] [] [] 1\.2\*3-4"#,
        ),
    ]);
}

#[test]
fn dates() {
    check(&[
        (
            r#"{{date "2006-01-02" "2024-03-05"}} {{date "15:04:05.000 -0700" "2024-03-05T14:07:09.5-03:30"}}"#,
            "2024-03-05 14:07:09.500 -0330",
        ),
        (
            r#"{{date "Monday, January _2 2006 3:04PM MST" "2024-03-05T00:07:09Z"}}"#,
            "Tuesday, March  5 2024 12:07AM UTC",
        ),
        (
            r#"{{date "Mon Jan 2 03:04pm 06 002 __2 Z07:00 Z0700 -07" "2000-02-29T23:00:00+05:00"}}"#,
            "Tue Feb 29 11:00pm 00 060  60 +05:00 +0500 +05",
        ),
        (
            r#"{{date "1/2 4:5.999" "2024-11-30T01:02:03.120Z"}} {{toDate "2024-11-30T01:02:03Z"}}"#,
            "11/30 2:3.12 2024-11-30",
        ),
    ]);
    check_errors(&[
        (r#"{{date "2006" "2023-02-29"}}"#, 1, "not a date"),
        (r#"{{date "2006" "yesterday"}}"#, 1, "not a date"),
        (r#"{{date "2006" "2024-01-01T25:00:00Z"}}"#, 1, "not a date"),
        (r#"{{date "2006" "2024-01-01T10:00:00+"}}"#, 1, "not a date"),
        (r#"{{date "2006" "é-é-é"}}"#, 1, "not a date"),
    ]);
}

#[test]
fn what_is_rarely_asked_for() {
    check(&[
        (
            r#"{{swapcase "This Is é"}} {{trimall "$" "$5$"}} {{abbrevboth 5 10 "1234 5678 9123"}}"#,
            "tHIS iS É 5 ...5678...",
        ),
        (
            r#"{{abbrevboth 2 8 "123456789"}} {{abbrevboth 99 8 "1234567890"}} {{abbrevboth 1 6 "1234567890"}} {{abbrevboth 6 9 "éééééééééé"}}"#,
            "12345... ...67890 1234567890 ...é...",
        ),
        (
            r#"{{add1f 1.5}} {{toDecimal "777"}} {{toDecimal 9}} {{typeIsLike "int" 1}}"#,
            "2.5 511 0 true",
        ),
        (r#"{{b32enc "foob"}} {{b32dec "MZXW6YQ="}} {{osBase "/a/b.c"}}"#, "MZXW6YQ= foob b.c"),
        (
            r#"{{sha1sum "abc"}} {{sha512sum "abc" | trunc 16}} {{adler32sum "Wikipedia"}} {{adler32sum ""}}"#,
            "a9993e364706816aba3e25717850c26c9cd0d89d ddaf35a193617aba 300286872 1",
        ),
    ]);
    check_errors(&[(r#"{{b32dec "74======"}}"#, 1, "UTF-8")]);
}

/// Functions of sprig's names that are glazed's.
#[test]
fn functions_that_are_not_those_of_sprig_are_documented() {
    let document = include_str!("../../../docs/command-files.md");
    let first_cells =
        document.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let first_cells: Vec<_> = first_cells.collect();
    for name in ["quote", "add", "sub", "mul", "div", "camelcase", "toDate", "toUrlField"] {
        let mut names = first_cells.iter().flat_map(|cell| cell.split(", "));
        assert!(names.any(|it| it.trim_matches('`') == name), "{name}");
    }
}

/// What glazed adds; sprig's arithmetic cuts floats, glazed's does not.
#[test]
fn glazed() {
    check(&[
        (
            "{{bold \"a\"}}{{italic \"a\"}}{{underline \"a\"}}{{strikethrough \"a\"}}{{code \"a\"}}",
            "**a***a*__a__~~a~~`a`",
        ),
        ("{{codeBlock \"x\" \"go\"}}", "```go\nx\n```"),
        (
            "{{padLeft \"a\" 3}}|{{padRight \"a\" \"3\"}}|{{padCenter \"a\" 4}}|{{rpad \"a\" 2}}|{{padLeft \"abc\" 1}}",
            "  a|a  | a  |a |abc",
        ),
        (
            "{{indentBlock 2 \"a\\nb\"}}|{{quoteNewlines \"a\\nb\"}}|{{stripNewlines \"a\\nb\"}}",
            "  a\n  b\n|a\\nb|a b",
        ),
        (
            "{{trimRightSpace \" a \"}}|{{trimTrailingWhitespaces \" a\\n\"}}|{{toUpper \"a\"}}{{toLower \"B\"}}",
            " a| a|Ab",
        ),
        (
            "{{replaceRegexp \"a1b2\" \"[0-9]\" \"#\"}} {{parseInt \"12\"}} {{parseFloat \"1.5\"}} {{parseInt \"x\"}}",
            "a#b# 12 1.5 0",
        ),
        (
            "{{currency 3}} {{currency 2.5}} {{currency \"x\"}}| {{toUrlParameter (sortAlpha .list)}} {{toUrlParameter 1.5}}",
            "3.00 2.50 | a,b,c 1.500000",
        ),
        ("{{add 1.5 2}} {{sub 1 0.5}} {{mul 1.5 3}} {{div 7.0 2}}", "3.5 0.5 4.5 3.5"),
    ]);
}
