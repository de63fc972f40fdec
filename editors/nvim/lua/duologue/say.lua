local Text = require("duologue.text")

--- Tells something in one line that fits: more would have Neovim wait for a key, which may be one that is typed. So
--- would a line below the rows of a question, which the redraw takes away.
return function(text, level)
  vim.schedule(function()
    vim.cmd.redraw()
    local width = math.max(20, vim.o.columns - 25)
    vim.notify("duologue: " .. Text.short(text, width), level or vim.log.levels.INFO)
  end)
end
