std = "luajit"
read_globals = { "vim" }
-- Options are set by assignment.
globals = { "vim.bo", "vim.wo", "vim.g" }
max_line_length = 120
