// Examples from the sample data of tercet: FAQs, chats, pairs and abstracts, in English and Korean.

export const examples = [
  {
    id: "faq-en",
    language: "en",
    title: {
      en: "Question and answers",
      ko: "질문과 답변"
    },
    about: {
      en: "A customer asks where the parcel is. Eight answers of an FAQ.",
      ko: "택배가 어디 있는지 묻는 고객과 FAQ 답변 8개"
    },
    turns: [
      "Where's my parcel? The tracking hasn't moved since Monday."
    ],
    candidates: [
      "Standard parcels need two to four working days on the mainland, and about a week to reach the islands.",
      "Scans are often skipped between depots, so a few quiet days are normal. If nothing has changed a week after the last one, we will open a search with the carrier.",
      "The driver tries a neighbour first. If that fails, you will find a note telling you which shop is keeping it for the next seven days.",
      "Please look behind the bins and in the shed, and ask next door. Still no sign by tomorrow? Then tell us, and we will check the GPS position and the photo that was taken.",
      "Probably not. Items from different warehouses travel separately, so the others should follow within a day or two. Your order page lists a tracking number for each.",
      "We do, until one in the afternoon, though never on Sundays.",
      "Our warehouse needs up to five days to inspect a return, and your bank takes another two or three to show the credit.",
      "On the evening before, you get a text with four two-hour slots to pick from. The earliest starts at eight."
    ]
  },
  {
    id: "chat-en",
    language: "en",
    title: {
      en: "Next reply in a chat",
      ko: "채팅의 다음 말"
    },
    about: {
      en: "A laptop does not start. Which reply comes next? The models disagree.",
      ko: "노트북이 켜지지 않는 상황에서 다음에 올 말. 모델마다 답이 다름"
    },
    turns: [
      "My laptop just says \"no bootable device\" on a black screen",
      "Don't panic. Did you change anything recently?",
      "No, I only copied some photos for my aunt last night",
      "Copied them onto a USB stick?",
      "Yes... oh. It's still in there",
      "It's trying to start from the stick. Pull it out, then turn it off and on",
      "It's booting normally! I was already looking at new laptops"
    ],
    candidates: [
      "then it's a driver bug in the new one. stay on the old kernel for now and try again after the next upgrade",
      "turn debug off, empty it with sudo truncate -s 0, and add a logrotate rule so your disk survives the next march",
      "May it is. I'll tell him the boot was just practice",
      "Fleece, rain jacket, thin towel, swimsuit. It all fits and I've even got room for a book",
      "Put the stick in your bag for your aunt, and keep your money for something nicer",
      "dead on the first try. nineteen deaths and i had thirty jars of the answer in my bag the whole time",
      "great, no more angles and no new cables. check the port twice a year if it lives in that pocket",
      "turn off auto-download for videos too, or your uncle fills it up again before your sister cuts the cake"
    ]
  },
  {
    id: "duplicate-en",
    language: "en",
    title: {
      en: "Same question in other words",
      ko: "같은 질문 찾기"
    },
    about: {
      en: "Is the question of this user already in the FAQ?",
      ko: "사용자의 질문이 이미 FAQ에 있는지 확인"
    },
    turns: [
      "How do I close my account for good?"
    ],
    candidates: [
      "How can I update my account password?",
      "Can I register more than one account with the same email address?",
      "How can I permanently delete my customer account?",
      "How do I change the name on my customer profile?",
      "How long is an account blocked after several failed sign-ins?",
      "What should I do about suspicious activity on my account?",
      "How can I unsubscribe from your marketing emails?",
      "How can I obtain a copy of my personal data?"
    ]
  },
  {
    id: "long-en",
    language: "en",
    title: {
      en: "Long documents",
      ko: "긴 문서"
    },
    about: {
      en: "Abstracts longer than a model reads: truncated tokens are counted.",
      ko: "모델이 다 읽지 못하는 긴 초록. 잘린 토큰 수를 표시"
    },
    turns: [
      "cheap way to raise the speed at which wing flutter begins"
    ],
    candidates: [
      "Rime ice was grown on a straight wing in a cold tunnel at three air temperatures. A layer two millimetres thick at the leading edge lowered the maximum lift by a quarter and moved the stall to a smaller angle of attack. The drag rose before any loss of lift could be felt by a pilot.",
      "A half model of a tapered wing was flown in a transonic tunnel until bending and twist began to feed each other. The study started as a check of a calculation method that engineers had used for straight wings for many years. Accelerometers were fixed at five stations along the span, and a camera followed painted dots on the tip so that the shape of the motion could be drawn afterwards. Before each run the model was struck with a soft hammer to find its natural frequencies in still air, which were compared with those of the finite element model. The two lowest frequencies agreed within two percent, the third within five. The tunnel was then started at a low dynamic pressure and raised in small steps. At each step the operators waited until the temperature had settled and recorded half a minute of signals. Damping of the first bending mode grew with speed at first, as the theory predicts, and then fell steeply. The tests were stopped four times by a safety device that spoils the flow when the tip moves more than three centimetres. Near the speed of sound the measured boundary lies well below the calculated one, and the lowest point was found at a Mach number of about nine tenths. The authors explain the dip by shock waves that travel back and forth over the rear half of the section. Moving forty grams of lead from the trailing edge to the nose of the tip raised the flutter speed by eighteen percent, which is the cheapest remedy that was found.",
      "Air was drawn through slots as fine as a hair in the upper surface of a glider wing. The boundary layer stayed laminar to seventy percent of the chord, and the drag of the section fell by forty percent. Insects that stuck to the nose spoiled the effect within an hour on a summer day.",
      "The article describes the design of a propeller for an unmanned aircraft that is meant to fly for weeks at a height of twenty kilometres, where the air has only a fourteenth of its density at sea level. The motor is small, because all of its power has to come from solar cells and from batteries that are charged during the day. A slow propeller with a large diameter is therefore the natural choice, but its blades work at a low Reynolds number, where the usual sections separate early and lose much of their lift. The authors computed polars for sixty sections with a method that includes the laminar bubble. They chose one with a thin nose and a camber that sits far back. Next they varied the twist and the chord along the blade with a vortex theory that treats the loss at the tip. The best blade has a diameter of two metres and turns four hundred times per minute. Two copies were made of carbon fibre over a foam core, each with a mass of half a kilogram. A test stand was mounted on a truck and driven along a runway at night, when there was no wind, to obtain thrust and torque at conditions of equal Reynolds number. The efficiency reached eighty-one percent, three points below the prediction. The stand vibrated at a certain rate of turn, and these points were left out. The last section of the article deals with hail and with birds that the aircraft meets during its climb. A strip of nickel at the leading edge stopped stones of ten millimetres, but it added a fifth to the mass of each blade.",
      "Sailplanes with probes on the nose flew along a ridge on eleven days of strong wind. The paper starts with a description of the instruments, of their calibration on the ground, and of the errors that arise from the motion of the aircraft itself. Three components of the wind were measured fifty times per second, along with temperature, humidity and position. The pilots flew parallel to the ridge at six heights, turned, and came back on the same line, so that each leg was seen twice within a quarter of an hour. On days with stable air, smooth waves formed behind the ridge and reached three times its height. Below them a rotor turned, with a reversed wind at the ground and sharp changes over a few wing spans. Statistics of the vertical speed differ from those that designers assume: large values are far more frequent than a normal distribution allows. A simple model with two populations, calm and rough, fits the histogram well. The width of the rough zone grows with the height of the hill and with the wind at its top. In the second half of the paper the records are turned into loads of an airliner on approach. The bending moment at the wing root stays below the design value in all cases but one. The exception is a record from the lee side on the fourth day, when the wind at the top reached thirty metres per second. Based on it the authors ask airports near mountains to close the runway behind the ridge once the wind at the top exceeds twenty-five metres per second.",
      "A rotor with three blades and a diameter of nine metres was erected on a farm to drive a generator, and it was observed for two years. The farm lies on open ground near the coast, with a mean wind of six metres per second at the height of the hub. The blades are made of laminated spruce covered with glass cloth, as in a glider, and were carved after a template by two people in six weeks. A tail vane turns the rotor into the wind. At high wind a hinge folds the tail, which turns the rotor sideways and limits its speed without any electronics. The generator has permanent magnets and charges a bank of batteries through a rectifier. The owner kept a diary of every repair, and an instrument stored wind, turns and current once per minute. The output over the first year was eleven megawatt hours, about nine tenths of what the power curve of the design promised. The difference came from days on which the batteries were full and the rotor was turned out of the wind. In the second year the leading edges were rough from sand, and the output dropped by seven percent until they were painted again. Lightning struck the mast once and destroyed the rectifier. The bearing of the tail wore out twice. The noise was measured at the nearest house, at a distance of two hundred metres, where it could not be told from that of the trees. All in all the machine paid back its price in nine years. The diary ends with a list of advice, of which the first is to install a brake that works from the ground, since nobody wants to climb a mast in a storm."
    ]
  },
  {
    id: "faq-ko",
    language: "ko",
    title: {
      en: "Question and FAQ entries",
      ko: "질문과 FAQ"
    },
    about: {
      en: "A forgotten password. Eight entries of an FAQ.",
      ko: "비밀번호를 잊어버린 고객과 FAQ 질문 8개"
    },
    turns: [
      "비밀번호를 잊어버렸는데 어떻게 다시 설정하나요?"
    ],
    candidates: [
      "회원 아이디는 어디에서 확인할 수 있나요?",
      "탈퇴 후 개인정보는 얼마 동안 보관되나요?",
      "프로필 닉네임 변경에 횟수나 기간 제한이 있나요?",
      "로그인 비밀번호를 재설정하려면 어떻게 해야 하나요?",
      "내 계정에서 의심스러운 로그인이 발견되면 어떻게 하나요?",
      "2단계 인증을 설정하는 방법은 무엇인가요?",
      "인증 앱을 사용할 수 없을 때는 어떻게 로그인하나요?",
      "휴면 계정을 해제하려면 어떻게 해야 하나요?"
    ]
  },
  {
    id: "chat-ko",
    language: "ko",
    title: {
      en: "Next reply in a chat",
      ko: "채팅의 다음 말"
    },
    about: {
      en: "A puppy refuses to walk. Which reply comes next?",
      ko: "산책을 안 하려는 강아지 이야기. 다음에 올 말은?"
    },
    turns: [
      "우리 강아지가 산책만 나가면 안 걸으려고 해",
      "이제 몇 살 됐는데?",
      "다섯 달 됐어. 현관 앞에 버티고 앉아 있어",
      "하네스를 싫어하는 거 아니야?",
      "집 안에서 채우면 또 잘 걸어",
      "그럼 바깥 소리가 무서운가 보다",
      "맞아, 오토바이 지나갈 때마다 움찔하더라"
    ],
    candidates: [
      "이번엔 콜라 안 사고 들어갈게. 문 열릴 때 같이 울어 줄 사람 필요하니까 너도 와",
      "그럼 제가 먼저 가서 줄 서 있을게요. 회의 끝나면 바로 오세요, 만두도 시켜 놓을게요",
      "진짜라니까. 그러게 7점 차라고 끄지 말랬잖아, 하이라이트라도 봐",
      "그럼 조용한 새벽에 안고 나가서 공원에 내려놔 봐. 다섯 달이면 금방 적응해",
      "오, 상자 때문에라도 올라가면 20만 원이 덜 아깝겠다. 오늘 당장 해 볼게",
      "멀리 안 가도 되고 사람도 없으면 딱이네. 김밥 싸서 정자에서 먹고 내려오자",
      "따뜻할 때 바로 얼리면 갓 지은 것 같아요. 이번 일요일에 하나 더 만들어 올 테니 드셔 보세요",
      "라면 질렸다니까 결국 라면 수프야? 그래도 참치랑 달걀 넣으면 좀 다르겠지"
    ]
  },
  {
    id: "duplicate-ko",
    language: "ko",
    title: {
      en: "Same meaning in other words",
      ko: "뜻이 같은 문장"
    },
    about: {
      en: "Only one of these sentences says the same.",
      ko: "같은 뜻을 다르게 표현한 문장 찾기"
    },
    turns: [
      "비가 와서 경기가 뒤로 미뤄졌다."
    ],
    candidates: [
      "내일은 하루 종일 비가 오겠습니다.",
      "태풍이 왔지만 항공편은 모두 정상 운항했다.",
      "우천으로 시합이 연기되었다.",
      "상대 팀이 우리 팀에 1 대 3으로 졌다.",
      "새 축구화를 신었더니 발뒤꿈치가 까졌다.",
      "이번 주에 태풍이 우리나라에 영향을 줄 것으로 보인다.",
      "우리는 배를 타고 제주도에 갔다.",
      "나가실 때는 꼭 문을 닫아 주세요."
    ]
  },
  {
    id: "long-ko",
    language: "ko",
    title: {
      en: "Long chat",
      ko: "긴 채팅"
    },
    about: {
      en: "More turns than a model reads: truncated tokens are counted.",
      ko: "모델이 다 읽지 못하는 긴 대화. 잘린 토큰 수를 표시"
    },
    turns: [
      "엄마, 올해 김장은 언제 해요?",
      "다음 주 토요일이다. 배추가 마흔 포기야",
      "마흔 포기요? 작년보다 열 포기나 많잖아요",
      "네 이모네도 나눠 주기로 했거든",
      "그럼 이모도 와서 같이 하셔야죠",
      "이모는 요새 허리가 안 좋다잖니",
      "알았어요, 그럼 이모부라도 부를게요. 마흔 포기를 우리 둘이 어떻게 해요",
      "이번 여름에 강릉 갈까, 부산 갈까?",
      "부산은 작년에 갔잖아. 강릉 가자",
      "거기 차 없이도 다닐 만해?",
      "기차로 두 시간이고 바다까지 버스도 자주 다녀",
      "근데 너 회 못 먹잖아. 가서 뭐 먹으려고",
      "순두부랑 커피면 충분해. 기차표는 내가 끊을 테니까 너는 바다 보이는 숙소 찾아 줘",
      "다음 주에 대만 가는데 우산 챙겨야 할까요?",
      "요즘 거기 우기라서 매일 한 번은 쏟아져요",
      "그럼 운동화는 다 젖겠네요",
      "저는 샌들 신고 다녔어요. 금방 마르니까 편하더라고요",
      "야시장도 비 오면 문 닫나요?"
    ],
    candidates: [
      "알았어요, 그럼 이모부라도 부를게요. 마흔 포기를 우리 둘이 어떻게 해요",
      "순두부랑 커피면 충분해. 기차표는 내가 끊을 테니까 너는 바다 보이는 숙소 찾아 줘",
      "웬만한 비에는 다 열어요. 작은 우산이랑 샌들만 있으면 야시장까지 문제없어요",
      "운전은 내가 할게. 넌 무릎 안 쓰시게 1층 방으로 예약하고, 칠순 케이크는 온천 가서 자르자",
      "멀리 안 가도 되고 사람도 없으면 딱이네. 김밥 싸서 정자에서 먹고 내려오자"
    ]
  }
];
