local Text = require("duologue.text")

--- Tells something in one line that fits: more would have Neovim wait for a key, which may be one that is typed.
return function(text, level)
  local width = math.max(20, vim.o.columns - 25)
  vim.notify("duologue: " .. Text.short(text, width), level or vim.log.levels.INFO)
end
