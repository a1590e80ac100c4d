#include "TitleFields.h"

#include "TemporaryDirectory.h"
#include "Transformers.h"

using namespace atlas::test;
using AttentionAtlas::ModelName;

namespace
{

TEST(TitleFields, ModelsAreCalledByTheirFolders)
{
  EXPECT_EQ(ModelName("/models/GPT-2/config.json"), "GPT-2");
  EXPECT_EQ(ModelName("/models/GPT-2/model.safetensors"), "GPT-2");
  EXPECT_EQ(ModelName("/models/GPT-2/checkpoint-300/config.json"), "GPT-2/checkpoint-300");
  EXPECT_EQ(ModelName("/models/Llama-3.2-1B.Q4_0.gguf"), "Llama-3.2-1B.Q4_0");
  EXPECT_EQ(ModelName("/hub/models--openai-community--gpt2/snapshots/607a30d/config.json"), "gpt2");
  const TemporaryDirectory folder;
  const std::string name = folder.Path().filename().string();
  EXPECT_EQ(ModelName(folder.Path()), name);
  EXPECT_EQ(ModelName(folder.Path() / ""), name);
}

}
