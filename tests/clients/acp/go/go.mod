module duologue.test/acp

go 1.23

require github.com/coder/acp-go-sdk v0.13.0
